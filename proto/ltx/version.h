#ifndef LTX_PROTO_VERSION_H_
#define LTX_PROTO_VERSION_H_

namespace ltx {

/// Of the whole product, server and client; Health and --version tell it.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace ltx

#endif  // LTX_PROTO_VERSION_H_
