#ifndef LTX_SERVER_REQUEST_MAPPING_H_
#define LTX_SERVER_REQUEST_MAPPING_H_

#include "absl/status/statusor.h"
#include "engine/pipeline/generation_job.h"
#include "engine/pipeline/generation_request.h"
#include "engine/pipeline/request_defaults.h"
#include "engine/verify/clip_verifier.h"
#include "kernels/memory_ledger.h"
#include "proto/ltx/v1/video_service.pb.h"

namespace ltx::server {

/// Between the wire's messages and the engine's structs.

/// `request` over the defaults of its recipe. Every field of the message either arrives in the
/// result or is refused by name: INVALID_ARGUMENT with an ErrorDetail.
absl::StatusOr<pipeline::GenerationRequest> FromWire(const v1::GenerateVideoRequest& request,
                                                     const pipeline::RequestDefaults& defaults);

v1::Phase ToWire(pipeline::Phase phase);
v1::EffectiveParameters ToWire(const pipeline::EffectiveParameters& parameters);
v1::VerifierReport ToWire(const verify::ClipReport& report);
/// "total" first, then every owner.
void AddMemory(const MemoryLedger::Snapshot& snapshot,
               google::protobuf::RepeatedPtrField<v1::MemoryAmounts>* memory);

}  // namespace ltx::server

#endif  // LTX_SERVER_REQUEST_MAPPING_H_
