#include "engine/checkpoint/config_reader.h"

#include <cmath>
#include <optional>

namespace ltx::checkpoint {
namespace {

/// Enough of a value to recognise it; a hostile config shall not fill the log.
constexpr size_t kMaxShown = 120;
/// Whole numbers up to here are exact in a double.
constexpr double kMaxExact = 9007199254740992.0;

std::optional<int64_t> AsInteger(const nlohmann::json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::abs(number) <= kMaxExact) || number != std::trunc(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

const nlohmann::json& EmptyObject() {
  // Never destroyed: readers may live as long as the program.
  static const auto* const empty = new nlohmann::json(nlohmann::json::object());
  return *empty;
}

}  // namespace

std::string ShowValue(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = absl::StrCat(text.substr(0, kMaxShown), "...");
  return text;
}

ConfigReader::ConfigReader(const nlohmann::json& object, absl::string_view path)
    : ConfigReader(object, std::string(path), std::make_shared<absl::Status>()) {}

ConfigReader::ConfigReader(const nlohmann::json& object, std::string path,
                           std::shared_ptr<absl::Status> status)
    : object_(&object), path_(std::move(path)), status_(std::move(status)) {
  if (!object_->is_object()) {
    Record(absl::InvalidArgumentError(
        absl::StrCat(path_, " is ", ShowValue(object), ", legal is an object")));
    object_ = &EmptyObject();
  }
}

void ConfigReader::Record(absl::Status status) {
  if (status_->ok()) *status_ = std::move(status);
}

bool ConfigReader::Has(const char* key) const { return object_->contains(key); }

bool ConfigReader::HasValue(const char* key) const {
  const nlohmann::json* const value = Find(key);
  return value != nullptr && !value->is_null();
}

const nlohmann::json* ConfigReader::Find(const char* key) const {
  const auto it = object_->find(key);
  return it == object_->end() ? nullptr : &*it;
}

ConfigReader ConfigReader::Object(const char* key) {
  const nlohmann::json* const value = Find(key);
  return ConfigReader(value == nullptr ? EmptyObject() : *value, absl::StrCat(path_, ".", key),
                      status_);
}

int64_t ConfigReader::Int(const char* key, int64_t fallback, int64_t low, int64_t high) {
  if (!Has(key) || !status_->ok()) return fallback;
  const std::optional<int64_t> value = AsInteger(*Find(key));
  if (value.has_value() && *value >= low && *value <= high) return *value;
  FailValue(key, absl::StrCat("an integer from ", low, " to ", high));
  return fallback;
}

double ConfigReader::Number(const char* key, double fallback, double low, double high) {
  if (!Has(key) || !status_->ok()) return fallback;
  const nlohmann::json& value = *Find(key);
  if (value.is_number()) {
    const double number = value.get<double>();
    if (number >= low && number <= high) return number;
  }
  FailValue(key, absl::StrCat("a number from ", low, " to ", high));
  return fallback;
}

bool ConfigReader::Bool(const char* key, bool fallback) {
  if (!Has(key) || !status_->ok()) return fallback;
  const nlohmann::json& value = *Find(key);
  if (value.is_boolean()) return value.get<bool>();
  FailValue(key, "true or false");
  return fallback;
}

std::string ConfigReader::String(const char* key, absl::string_view fallback) {
  if (!Has(key) || !status_->ok()) return std::string(fallback);
  const nlohmann::json& value = *Find(key);
  if (value.is_string()) return value.get<std::string>();
  FailValue(key, "a string");
  return std::string(fallback);
}

std::vector<int64_t> ConfigReader::Ints(const char* key, std::vector<int64_t> fallback,
                                        size_t min_size, size_t max_size, int64_t low,
                                        int64_t high) {
  if (!Has(key) || !status_->ok()) return fallback;
  const nlohmann::json& list = *Find(key);
  std::vector<int64_t> values;
  bool legal = list.is_array() && list.size() >= min_size && list.size() <= max_size;
  if (legal) {
    for (const nlohmann::json& item : list) {
      const std::optional<int64_t> value = AsInteger(item);
      legal = legal && value.has_value() && *value >= low && *value <= high;
      values.push_back(value.value_or(low));
    }
  }
  if (legal) return values;
  FailValue(key, absl::StrCat("a list of ",
                              min_size == max_size ? absl::StrCat(min_size)
                                                   : absl::StrCat(min_size, " to ", max_size),
                              " integers from ", low, " to ", high));
  return fallback;
}

void ConfigReader::Require(const char* key) {
  if (!HasValue(key))
    Record(absl::InvalidArgumentError(absl::StrCat(path_, ".", key, " is missing")));
}

void ConfigReader::RequireEqual(const char* key, const nlohmann::json& expected) {
  const nlohmann::json* const value = Find(key);
  if (value == nullptr && expected.is_null()) return;
  if (value == nullptr) {
    Record(absl::InvalidArgumentError(
        absl::StrCat(path_, ".", key, " is missing, legal is ", ShowValue(expected))));
  } else if (*value != expected) {
    FailValue(key, ShowValue(expected));
  }
}

void ConfigReader::FailValue(const char* key, absl::string_view legal) {
  const nlohmann::json* const value = Find(key);
  Record(absl::InvalidArgumentError(absl::StrCat(path_, ".", key, " is ",
                                                 value == nullptr ? "missing" : ShowValue(*value),
                                                 ", legal is ", legal)));
}

void ConfigReader::Fail(absl::string_view message) {
  Record(absl::InvalidArgumentError(absl::StrCat(path_, ": ", message)));
}

void ConfigReader::Unsupported(const char* key, absl::string_view supported) {
  const nlohmann::json* const value = Find(key);
  Record(absl::UnimplementedError(
      absl::StrCat(path_, ".", key, " is ", value == nullptr ? "missing" : ShowValue(*value),
                   ", which is not supported; supported: ", supported)));
}

}  // namespace ltx::checkpoint
