#include "client/json_output.h"

#include <cstdio>
#include <string>

#include "google/protobuf/util/json_util.h"

namespace ltx::client {

void PrintJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions print;
  print.preserve_proto_field_names = true;
  print.add_whitespace = true;
  std::string text;
  (void)google::protobuf::util::MessageToJsonString(message, &text, print);
  std::printf("%s", text.c_str());
}

}  // namespace ltx::client
