#include "tests/adherence/contact_sheet.h"

#include "engine/media/png_writer.h"

namespace ltx::adherence {

ContactSheet::ContactSheet(int rows, int columns, int height, int width)
    : rows_(rows),
      columns_(columns),
      cell_height_(height / 2),
      cell_width_(width / 2),
      pixels_(static_cast<size_t>(rows) * cell_height_ * columns * cell_width_ * 3) {}

void ContactSheet::Put(int row, int column, absl::Span<const float> frame) {
  const int width = 2 * cell_width_;
  const int sheet_width = columns_ * cell_width_;
  for (int y = 0; y < cell_height_; ++y) {
    for (int x = 0; x < cell_width_; ++x) {
      for (int c = 0; c < 3; ++c) {
        const float* source = &frame[(2 * y * width + 2 * x) * 3 + c];
        const size_t at =
            static_cast<size_t>(row * cell_height_ + y) * sheet_width + column * cell_width_ + x;
        const float mean =
            0.25f * (source[0] + source[3] + source[3 * width] + source[3 * width + 3]);
        pixels_[3 * at + c] = static_cast<uint8_t>(255.0f * mean);
      }
    }
  }
}

absl::Status ContactSheet::Write(const std::string& path) const {
  return media::WritePng(path, pixels_, columns_ * cell_width_, rows_ * cell_height_).status();
}

}  // namespace ltx::adherence
