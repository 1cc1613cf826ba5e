#include "engine/checkpoint/test_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "engine/checkpoint/safetensors.h"

namespace ltx::checkpoint {
namespace {

[[noreturn]] void Die(const std::string& message) {
  std::cerr << message << "\n";
  std::abort();
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

std::string MakeTestFolder(absl::string_view name) {
  const char* const root = std::getenv("TEST_TMPDIR");
  const std::filesystem::path folder =
      (root == nullptr ? std::filesystem::temp_directory_path() : std::filesystem::path(root)) /
      std::string(name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

void WriteTestFile(const std::string& path, absl::string_view contents) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream stream(path, std::ios::binary);
  stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  stream.close();
  if (!stream) Die("cannot write " + path);
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) Die("cannot read " + path);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string SafetensorsBytes(absl::string_view header, absl::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i)));
  bytes.append(header.data(), header.size());
  bytes.append(data.data(), data.size());
  return bytes;
}

SafetensorsWriter SafetensorsWriter::Copy(const std::string& path) {
  const auto file = SafetensorsFile::Open(path);
  if (!file.ok()) Die(file.status().ToString());
  SafetensorsWriter writer;
  for (const auto& [key, value] : (*file)->metadata()) writer.metadata_[key] = value;
  for (const auto& [name, entry] : (*file)->entries()) {
    writer.items_[name] = {entry.dtype, entry.shape,
                           std::string(entry.bytes.begin(), entry.bytes.end())};
  }
  return writer;
}

SafetensorsWriter& SafetensorsWriter::Metadata(const std::string& key, const std::string& value) {
  metadata_[key] = value;
  return *this;
}

SafetensorsWriter& SafetensorsWriter::RemoveMetadata(const std::string& key) {
  metadata_.erase(key);
  return *this;
}

SafetensorsWriter& SafetensorsWriter::Raw(const std::string& name, DType dtype, const Shape& shape,
                                          absl::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) != shape.num_elements() * SizeOf(dtype)) {
    Die("test tensor " + name + " has the wrong size");
  }
  items_[name] = {dtype, shape, std::string(bytes)};
  return *this;
}

SafetensorsWriter& SafetensorsWriter::Floats(const std::string& name, const Shape& shape,
                                             absl::Span<const float> values) {
  return Raw(name, DType::kF32, shape, BytesOf(std::vector<float>(values.begin(), values.end())));
}

SafetensorsWriter& SafetensorsWriter::BFloat16s(const std::string& name, const Shape& shape,
                                                absl::Span<const float> values) {
  return Raw(name, DType::kBF16, shape,
             BytesOf(std::vector<BFloat16>(values.begin(), values.end())));
}

SafetensorsWriter& SafetensorsWriter::Ints(const std::string& name, const Shape& shape,
                                           absl::Span<const int64_t> values) {
  return Raw(name, DType::kI64, shape, BytesOf(std::vector<int64_t>(values.begin(), values.end())));
}

SafetensorsWriter& SafetensorsWriter::Remove(const std::string& name) {
  if (items_.erase(name) == 0) Die("no test tensor " + name);
  return *this;
}

SafetensorsWriter& SafetensorsWriter::Reshape(const std::string& name, const Shape& shape) {
  Item& item = items_.at(name);
  item.shape = shape;
  item.bytes.assign(shape.num_elements() * SizeOf(item.dtype), '\0');
  return *this;
}

std::string SafetensorsWriter::Bytes() const {
  nlohmann::json header = nlohmann::json::object();
  if (!metadata_.empty()) header["__metadata__"] = metadata_;
  std::string data;
  for (const auto& [name, item] : items_) {
    const size_t begin = data.size();
    data += item.bytes;
    header[name] = {
        {"dtype", std::string(DTypeName(item.dtype))},
        {"shape", std::vector<int64_t>(item.shape.dims().begin(), item.shape.dims().end())},
        {"data_offsets", {begin, data.size()}}};
  }
  return SafetensorsBytes(header.dump(), data);
}

}  // namespace ltx::checkpoint
