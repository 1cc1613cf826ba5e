#ifndef LTX_SERVER_VERSION_H_
#define LTX_SERVER_VERSION_H_

namespace ltx::server {

/// Of the whole product; Health and --version tell it.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace ltx::server

#endif  // LTX_SERVER_VERSION_H_
