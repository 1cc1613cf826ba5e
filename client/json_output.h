#ifndef LTX_CLIENT_JSON_OUTPUT_H_
#define LTX_CLIENT_JSON_OUTPUT_H_

#include "google/protobuf/message.h"

namespace ltx::client {

/// Writes a message to stdout as indented JSON, with the field names of the .proto file.
void PrintJson(const google::protobuf::Message& message);

}  // namespace ltx::client

#endif  // LTX_CLIENT_JSON_OUTPUT_H_
