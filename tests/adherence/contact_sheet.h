#ifndef LTX_TESTS_ADHERENCE_CONTACT_SHEET_H_
#define LTX_TESTS_ADHERENCE_CONTACT_SHEET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace ltx::adherence {

/// Frames of clips side by side at half their size, for a person to look at.
class ContactSheet {
 public:
  /// Of frames [height, width, 3], both even.
  ContactSheet(int rows, int columns, int height, int width);

  /// Draws the frame [height, width, 3] in [0, 1] into a cell.
  void Put(int row, int column, absl::Span<const float> frame);

  /// As a PNG.
  absl::Status Write(const std::string& path) const;

 private:
  const int rows_, columns_, cell_height_, cell_width_;
  std::vector<uint8_t> pixels_;
};

}  // namespace ltx::adherence

#endif  // LTX_TESTS_ADHERENCE_CONTACT_SHEET_H_
