#include "engine/checkpoint/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "nlohmann/json.hpp"

namespace ltx::checkpoint {
namespace {

/// The format's own limit on the JSON header. The largest published checkpoints stay below 1 MB.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr int64_t kLengthBytes = 8;
/// Names longer than this are cut in messages: a hostile file shall not fill the log.
constexpr size_t kMaxNameInMessage = 200;

std::string Quoted(absl::string_view name) {
  return absl::StrCat(
      "\"", absl::Utf8SafeCHexEscape(name.substr(0, kMaxNameInMessage)),
      name.size() > kMaxNameInMessage ? absl::StrCat("... (", name.size(), " bytes)") : "", "\"");
}

std::optional<DType> ParseDType(absl::string_view name) {
  for (const DType dtype :
       {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kF8E4M3, DType::kF8E5M2,
        DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kBool}) {
    if (DTypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

/// A file that is open for reading, with a read-only private mapping of the whole.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// NOT_FOUND unless `path` is a readable regular file.
  absl::Status Open(const std::string& path) {
    if (path.empty()) return absl::NotFoundError("the path of a safetensors file is empty");
    // Without O_NONBLOCK, opening a named pipe would wait for its writer.
    file_.emplace(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file_->get() < 0) {
      return absl::NotFoundError(absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
    }
    struct stat info = {};
    if (fstat(file_->get(), &info) != 0) {
      return absl::NotFoundError(absl::StrCat(path, ": cannot stat: ", std::strerror(errno)));
    }
    if (!S_ISREG(info.st_mode)) {
      return absl::NotFoundError(absl::StrCat(path, ": not a regular file"));
    }
    size_ = static_cast<size_t>(info.st_size);
    if (size_ == 0) return absl::OkStatus();
    void* const address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_->get(), 0);
    if (address == MAP_FAILED) {
      return absl::NotFoundError(absl::StrCat(path, ": cannot map: ", std::strerror(errno)));
    }
    data_ = address;
    return absl::OkStatus();
  }

  absl::Span<const uint8_t> bytes() const {
    return absl::MakeConstSpan(static_cast<const uint8_t*>(data_), data_ == nullptr ? 0 : size_);
  }

  /// Reads [begin, begin + to.size()) of the file, not of the mapping; DATA_LOSS, without the path,
  /// if it has not got them any more.
  absl::Status Read(int64_t begin, absl::Span<uint8_t> to) const {
    while (!to.empty()) {
      const ssize_t count = pread(file_->get(), to.data(), to.size(), begin);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        return absl::DataLossError(
            absl::StrCat("reading at byte ", begin, " failed: ", std::strerror(errno)));
      }
      if (count == 0) {
        return absl::DataLossError(absl::StrCat("the file ends at byte ", begin, "; it had ", size_,
                                                " bytes when it was opened"));
      }
      begin += count;
      to.remove_prefix(static_cast<size_t>(count));
    }
    return absl::OkStatus();
  }

 private:
  std::optional<const FileDescriptor> file_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// A header entry as written, before it is checked against the file.
struct RawEntry {
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> data_offsets;
};

/// Reads the header without building a document: whatever is nested deeper than the format allows
/// is refused when it is seen, so neither depth nor number of values costs more than their bytes.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::map<std::string, RawEntry, std::less<>> entries;
  std::map<std::string, std::string, std::less<>> metadata;

  const std::string& error() const { return error_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return place_ == Place::kList
               ? Fail(absl::StrCat("tensor ", Quoted(name_), ": ", field_, " holds ", value,
                                   ", legal are integers from 0"))
               : Unexpected("a number");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kList) return Unexpected("a number");
    // One past the largest legal list: enough to tell that it is too long.
    if (list_.size() <= Shape::kMaxRank) list_.push_back(value);
    return true;
  }
  bool number_float(number_float_t, const string_t& text) override {
    return place_ == Place::kList
               ? Fail(absl::StrCat("tensor ", Quoted(name_), ": ", field_, " holds ", Quoted(text),
                                   ", legal are integers from 0"))
               : Unexpected("a number");
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      metadata[key_] = std::move(value);
      return true;
    }
    if (place_ != Place::kEntry || field_ != "dtype") return Unexpected("a string");
    entries[name_].dtype = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return Unexpected("binary data"); }

  bool start_object(size_t) override {
    if (place_ == Place::kOutside && !seen_root_) {
      seen_root_ = true;
      place_ = Place::kRoot;
      return true;
    }
    if (place_ != Place::kRoot) return Unexpected("an object");
    place_ = in_metadata_ ? Place::kMetadata : Place::kEntry;
    return true;
  }
  bool key(string_t& value) override {
    switch (place_) {
      case Place::kRoot:
        in_metadata_ = value == "__metadata__";
        if (in_metadata_ ? std::exchange(seen_metadata_, true)
                         : !entries.try_emplace(value).second) {
          return Fail(absl::StrCat("key ", Quoted(value), " stands twice in the header"));
        }
        name_ = std::move(value);
        return true;
      case Place::kMetadata:
        if (!metadata.try_emplace(value).second) {
          return Fail(absl::StrCat("key ", Quoted(value), " stands twice in __metadata__"));
        }
        key_ = std::move(value);
        return true;
      case Place::kEntry: {
        const RawEntry& entry = entries[name_];
        const bool known = value == "dtype" || value == "shape" || value == "data_offsets";
        const bool again = (value == "dtype" && entry.dtype.has_value()) ||
                           (value == "shape" && entry.shape.has_value()) ||
                           (value == "data_offsets" && entry.data_offsets.has_value());
        if (!known || again) {
          return Fail(absl::StrCat(
              "tensor ", Quoted(name_), ": field ", Quoted(value),
              known ? " stands twice" : " is unknown, legal are dtype, shape, data_offsets"));
        }
        field_ = std::move(value);
        return true;
      }
      default:
        return Unexpected("a key");
    }
  }
  bool end_object() override {
    place_ = place_ == Place::kRoot ? Place::kOutside : Place::kRoot;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ != Place::kEntry || field_ == "dtype") return Unexpected("a list");
    place_ = Place::kList;
    list_.clear();
    return true;
  }
  bool end_array() override {
    RawEntry& entry = entries[name_];
    (field_ == "shape" ? entry.shape : entry.data_offsets) = list_;
    place_ = Place::kEntry;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return error_.empty() ? Fail(absl::StrCat("the header is not JSON, at byte ", position))
                          : false;
  }

 private:
  enum class Place { kOutside, kRoot, kMetadata, kEntry, kList };

  bool Fail(std::string message) {
    error_ = std::move(message);
    return false;
  }
  bool Unexpected(absl::string_view what) {
    switch (place_) {
      case Place::kOutside:
        return Fail(absl::StrCat("the header is ", what, ", not an object"));
      case Place::kRoot:
        return Fail(absl::StrCat(in_metadata_ ? "" : "tensor ", Quoted(name_), ": ", what,
                                 " where an object is expected"));
      case Place::kMetadata:
        return Fail(absl::StrCat("__metadata__ key ", Quoted(key_), ": ", what,
                                 " where a string is expected"));
      case Place::kEntry:
        return Fail(absl::StrCat("tensor ", Quoted(name_), ": ", field_, " is ", what,
                                 ", legal is ",
                                 field_ == "dtype" ? "a string" : "a list of integers"));
      case Place::kList:
        return Fail(absl::StrCat("tensor ", Quoted(name_), ": ", field_, " holds ", what,
                                 ", legal are integers from 0"));
    }
    return false;
  }

  Place place_ = Place::kOutside;
  bool seen_root_ = false;
  bool seen_metadata_ = false;
  bool in_metadata_ = false;
  std::string name_;
  std::string field_;
  std::string key_;
  std::vector<uint64_t> list_;
  std::string error_;
};

/// Checks one entry against the data area of `data_bytes` and resolves it. Errors do not name file
/// and tensor yet.
absl::StatusOr<SafetensorsFile::Entry> CheckEntry(const RawEntry& raw,
                                                  absl::Span<const uint8_t> data) {
  if (!raw.dtype.has_value()) return absl::InvalidArgumentError("dtype is missing");
  if (!raw.shape.has_value()) return absl::InvalidArgumentError("shape is missing");
  if (!raw.data_offsets.has_value()) return absl::InvalidArgumentError("data_offsets is missing");
  const std::optional<DType> dtype = ParseDType(*raw.dtype);
  if (!dtype.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dtype ", Quoted(*raw.dtype),
                     " is unknown, legal are F32, BF16, F16, F64, F8_E4M3, F8_E5M2, U8, I8, I16, "
                     "I32, I64, BOOL"));
  }
  if (raw.shape->size() > Shape::kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape has more than ", Shape::kMaxRank, " axes"));
  }
  // Zero extents count as one here, so that no product of some of the extents overflows either.
  int64_t bound = SizeOf(*dtype);
  int64_t bytes = SizeOf(*dtype);
  std::vector<int64_t> dims;
  for (const uint64_t extent : *raw.shape) {
    if (__builtin_mul_overflow(bound, std::max<uint64_t>(extent, 1), &bound)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape with extent ", extent, " has more bytes than 64 bits can count"));
    }
    dims.push_back(static_cast<int64_t>(extent));
    bytes = extent == 0 ? 0 : bytes * static_cast<int64_t>(extent);
  }
  if (raw.data_offsets->size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("data_offsets has ", raw.data_offsets->size(), " values, legal are two"));
  }
  const uint64_t begin = raw.data_offsets->front();
  const uint64_t end = raw.data_offsets->back();
  if (begin > end || end > data.size()) {
    return absl::InvalidArgumentError(absl::StrCat("data_offsets [", begin, ", ", end,
                                                   "] are reversed or outside the ", data.size(),
                                                   " data bytes of the file"));
  }
  const Shape shape(dims);
  if (end - begin != static_cast<uint64_t>(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("data_offsets [", begin, ", ", end, "] hold ",
                                                   end - begin, " bytes, shape ", shape.ToString(),
                                                   " of ", *raw.dtype, " needs ", bytes));
  }
  return SafetensorsFile::Entry{*dtype, shape, data.subspan(begin, end - begin)};
}

/// The file object together with what it maps.
class MappedSafetensorsFile final : public SafetensorsFile {
 public:
  absl::Status ReadHeader(const std::string& path) {
    path_ = path;
    LTX_RETURN_IF_ERROR(mapping_.Open(path));
    const absl::Span<const uint8_t> bytes = mapping_.bytes();
    file_bytes_ = static_cast<int64_t>(bytes.size());
    if (bytes.size() < kLengthBytes) {
      return Invalid(absl::StrCat("the file has ", bytes.size(),
                                  " bytes, a safetensors file starts with an 8-byte length"));
    }
    uint64_t header_bytes = 0;
    for (int i = kLengthBytes - 1; i >= 0; --i) header_bytes = header_bytes << 8 | bytes[i];
    if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - kLengthBytes) {
      return Invalid(absl::StrCat(
          "header length ", header_bytes, " exceeds ",
          header_bytes > kMaxHeaderBytes ? kMaxHeaderBytes : bytes.size() - kLengthBytes,
          header_bytes > kMaxHeaderBytes ? ", the most the format allows"
                                         : ", what the file holds"));
    }
    HeaderReader header;
    const char* const text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
    if (!nlohmann::json::sax_parse(text, text + header_bytes, &header)) {
      return Invalid(header.error());
    }
    metadata_ = std::move(header.metadata);
    return ReadEntries(header.entries, bytes.subspan(kLengthBytes + header_bytes));
  }

  absl::Status Read(const Entry& entry, int64_t begin, absl::Span<uint8_t> to) const override {
    const int64_t tensor = entry.bytes.data() - mapping_.bytes().data();
    const absl::Status status = mapping_.Read(tensor + begin, to);
    if (status.ok()) return absl::OkStatus();
    return absl::Status(status.code(), absl::StrCat(path_, ": ", status.message()));
  }

 private:
  absl::Status Invalid(absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", message));
  }

  absl::Status ReadEntries(const std::map<std::string, RawEntry, std::less<>>& raw_entries,
                           absl::Span<const uint8_t> data) {
    for (const auto& [name, raw] : raw_entries) {
      absl::StatusOr<Entry> entry = CheckEntry(raw, data);
      if (!entry.ok()) {
        return Invalid(absl::StrCat("tensor ", Quoted(name), ": ", entry.status().message()));
      }
      entries_.emplace(name, *entry);
    }
    return CheckCoverage(data);
  }

  /// The format wants every data byte to belong to exactly one tensor.
  absl::Status CheckCoverage(absl::Span<const uint8_t> data) const {
    using Named = std::pair<const std::string, Entry>;
    std::vector<const Named*> order;
    order.reserve(entries_.size());
    for (const Named& named : entries_) order.push_back(&named);
    std::sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
      const absl::Span<const uint8_t> x = a->second.bytes, y = b->second.bytes;
      return x.data() != y.data() ? x.data() < y.data() : x.size() < y.size();
    });
    const uint8_t* covered = data.data();
    const std::string* previous = nullptr;
    for (const Named* named : order) {
      const absl::Span<const uint8_t> bytes = named->second.bytes;
      if (bytes.data() != covered) {
        return Invalid(absl::StrCat(
            "tensor ", Quoted(named->first),
            bytes.data() < covered ? " overlaps tensor " : " leaves unused bytes behind ",
            previous == nullptr ? "the header" : Quoted(*previous)));
      }
      covered += bytes.size();
      previous = &named->first;
    }
    if (covered != data.data() + data.size()) {
      return Invalid(absl::StrCat(data.data() + data.size() - covered,
                                  " bytes behind the last tensor belong to none"));
    }
    return absl::OkStatus();
  }

  Mapping mapping_;
};

}  // namespace

absl::Status SafetensorsFile::Read(const Entry& entry, int64_t begin,
                                   absl::Span<uint8_t> to) const {
  if (!to.empty()) std::memcpy(to.data(), entry.bytes.data() + begin, to.size());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::Open(
    const std::string& path) {
  auto file = std::make_shared<MappedSafetensorsFile>();
  LTX_RETURN_IF_ERROR(file->ReadHeader(path));
  return std::shared_ptr<const SafetensorsFile>(std::move(file));
}

}  // namespace ltx::checkpoint
