#include "kernels/tensor.h"

#include <array>
#include <memory>

#include "gtest/gtest.h"

namespace ltx {
namespace {

Tensor Over(std::array<float, 24>* block, const Shape& shape) {
  auto storage = std::make_shared<Storage>(block->data(), sizeof(*block), true);
  return Tensor(storage, 0, shape, DType::kF32);
}

TEST(ShapeTest, Extents) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.num_elements(), 24);
  EXPECT_EQ(shape.num_rows(), 6);
  EXPECT_EQ(shape.dim(-1), 4);
  EXPECT_EQ(shape.ToString(), "[2, 3, 4]");
  EXPECT_EQ(Shape({5, 0, 3}).num_elements(), 0);
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_NE(shape, Shape({2, 3}));
  Shape changed = shape;
  changed.set_dim(-1, 7);
  EXPECT_EQ(changed, Shape({2, 3, 7}));
}

TEST(TensorTest, ReshapeSharesTheElements) {
  std::array<float, 24> block{};
  const Tensor tensor = Over(&block, {2, 3, 4});
  auto flat = tensor.Reshape({6, 4});
  ASSERT_TRUE(flat.ok());
  EXPECT_EQ(flat->raw(), tensor.raw());
  EXPECT_EQ(flat->num_bytes(), 96);
  EXPECT_EQ(tensor.Reshape({5, 5}).status().code(), absl::StatusCode::kInternal);
}

TEST(TensorTest, RowsAreAView) {
  std::array<float, 24> block{};
  const Tensor tensor = Over(&block, {4, 3, 2});
  auto rows = tensor.Rows(1, 3);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->shape(), Shape({2, 3, 2}));
  EXPECT_EQ(rows->data<float>(), block.data() + 6);
  EXPECT_EQ(rows->Rows(1, 2)->data<float>(), block.data() + 12);
  EXPECT_EQ(tensor.Rows(2, 2)->num_elements(), 0);
  EXPECT_EQ(tensor.Rows(3, 5).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(tensor.Rows(2, 1).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(tensor.Rows(-1, 1).status().code(), absl::StatusCode::kInternal);
}

TEST(TensorTest, UndefinedStandsForNotGiven) {
  const Tensor tensor;
  EXPECT_FALSE(tensor.defined());
  EXPECT_FALSE(tensor.host_accessible());
  EXPECT_EQ(tensor.raw(), nullptr);
}

}  // namespace
}  // namespace ltx
