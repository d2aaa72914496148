/* The addon's functions, as `Native` in ts/native/binding.ts describes them: one unwrap -> zr_* or
 * zs_* -> wrap each. The environment's instance data is its Dispatcher.
 */
#ifndef LOADERX_NAPI_CALLS_H
#define LOADERX_NAPI_CALLS_H

#include <napi.h>

namespace loaderx {

Napi::Value AbiVersion(const Napi::CallbackInfo &info);
Napi::Value LaneCount(const Napi::CallbackInfo &info);
Napi::Value SetLaneCount(const Napi::CallbackInfo &info);
Napi::Value PreferLargePages(const Napi::CallbackInfo &info);
Napi::Value Pad(const Napi::CallbackInfo &info);

Napi::Value StoreCreate(const Napi::CallbackInfo &info);
Napi::Value StoreOpen(const Napi::CallbackInfo &info);
Napi::Value StoreJoin(const Napi::CallbackInfo &info);
Napi::Value StoreInfo(const Napi::CallbackInfo &info);
Napi::Value AppendSync(const Napi::CallbackInfo &info);
Napi::Value AppendPiecesSync(const Napi::CallbackInfo &info);
Napi::Value Append(const Napi::CallbackInfo &info);
Napi::Value AppendFile(const Napi::CallbackInfo &info);
Napi::Value Mark(const Napi::CallbackInfo &info);
Napi::Value Rewind(const Napi::CallbackInfo &info);
Napi::Value PublishSync(const Napi::CallbackInfo &info);
Napi::Value Publish(const Napi::CallbackInfo &info);
Napi::Value GatherFixedSync(const Napi::CallbackInfo &info);
Napi::Value GatherFixed(const Napi::CallbackInfo &info);
Napi::Value GatherRaggedSync(const Napi::CallbackInfo &info);
Napi::Value GatherRagged(const Napi::CallbackInfo &info);
Napi::Value LogicalBytesSync(const Napi::CallbackInfo &info);
Napi::Value StorePage(const Napi::CallbackInfo &info);
Napi::Value StoreExpect(const Napi::CallbackInfo &info);
Napi::Value CheckRecordsSync(const Napi::CallbackInfo &info);
Napi::Value CheckRecords(const Napi::CallbackInfo &info);
Napi::Value CheckLayout(const Napi::CallbackInfo &info);
Napi::Value CloseSync(const Napi::CallbackInfo &info);

Napi::Value TrainDict(const Napi::CallbackInfo &info);
Napi::Value DecompressFrame(const Napi::CallbackInfo &info);

Napi::Value SamplerCreate(const Napi::CallbackInfo &info);
Napi::Value SamplerBatch(const Napi::CallbackInfo &info);
Napi::Value SamplerStep(const Napi::CallbackInfo &info);
Napi::Value SamplerDraw(const Napi::CallbackInfo &info);
Napi::Value SamplerSeekSync(const Napi::CallbackInfo &info);
Napi::Value SamplerSeek(const Napi::CallbackInfo &info);
Napi::Value SamplerClose(const Napi::CallbackInfo &info);

} // namespace loaderx

#endif
