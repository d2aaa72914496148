/* The addon's entry: function table, per-environment state, its cleanup hook, and the pin. */
#include <napi.h>

#include <cstdlib>
#include <new>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "calls.h"
#include "value.h"
#include "work.h"

/* libc++'s own throw, and nothing here catches: a process without memory would end. Ours are for this
 * library alone, whose symbols are hidden. */
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept { return std::malloc(bytes); }
void operator delete(void *block) noexcept { std::free(block); }
void operator delete(void *block, std::size_t) noexcept { std::free(block); }
void operator delete(void *block, const std::nothrow_t &) noexcept { std::free(block); }

/* Nobody here makes arrays but node-addon-api, for the arguments of a call that has more than 6, and it
 * does not ask whether there was memory. Such lists last as long as their call, so without memory one at
 * a time is put into the thread's reserve; a call within a call would be a second. */
namespace {
constexpr std::size_t kReserveBytes = 256;
alignas(16) thread_local char reserve[kReserveBytes];
thread_local bool is_reserve_taken = false;
} // namespace

void *operator new[](std::size_t bytes) {
    void *block = std::malloc(bytes);
    if (block != nullptr) return block;
    if (bytes > kReserveBytes || is_reserve_taken) std::abort();
    is_reserve_taken = true;
    return reserve;
}
void operator delete[](void *block) noexcept {
    if (block == reserve)
        is_reserve_taken = false;
    else
        std::free(block);
}
void operator delete[](void *block, std::size_t) noexcept { operator delete[](block); }

namespace loaderx {

namespace {

/* Keeps this library mapped until the process ends. Node closes an addon when the last worker that
 * loaded it is gone, while lanes (and signal handlers) would go on to run its code. */
bool Pin() {
#ifdef _WIN32
    HMODULE module;
    return GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN |
                                  GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                              reinterpret_cast<LPCWSTR>(&Pin), &module) != 0;
#else
    Dl_info here;
    if (dladdr(reinterpret_cast<void *>(&Pin), &here) == 0) return false;
    return dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
#endif
}

template <Napi::Function::Callback call>
bool Define(Napi::Env env, Napi::Object exports, const char *name) {
    const Napi::Function function = Napi::Function::New<call>(env, name);
    return !function.IsEmpty() && exports.Set(name, function);
}

bool DefineCalls(Napi::Env env, Napi::Object exports) {
    return Define<AbiVersion>(env, exports, "abiVersion") &&
           Define<LaneCount>(env, exports, "laneCount") &&
           Define<SetLaneCount>(env, exports, "setLaneCount") &&
           Define<PreferLargePages>(env, exports, "preferLargePages") &&
           Define<StoreCreate>(env, exports, "storeCreate") &&
           Define<StoreOpen>(env, exports, "storeOpen") &&
           Define<StoreJoin>(env, exports, "storeJoin") &&
           Define<StoreInfo>(env, exports, "storeInfo") &&
           Define<AppendSync>(env, exports, "appendSync") &&
           Define<AppendPiecesSync>(env, exports, "appendPiecesSync") &&
           Define<Append>(env, exports, "append") &&
           Define<AppendFile>(env, exports, "appendFile") &&
           Define<Mark>(env, exports, "mark") &&
           Define<Rewind>(env, exports, "rewind") &&
           Define<PublishSync>(env, exports, "publishSync") &&
           Define<Publish>(env, exports, "publish") &&
           Define<GatherFixedSync>(env, exports, "gatherFixedSync") &&
           Define<GatherFixed>(env, exports, "gatherFixed") &&
           Define<GatherRaggedSync>(env, exports, "gatherRaggedSync") &&
           Define<GatherRagged>(env, exports, "gatherRagged") &&
           Define<LogicalBytesSync>(env, exports, "logicalBytesSync") &&
           Define<StorePage>(env, exports, "storePage") &&
           Define<StoreExpect>(env, exports, "storeExpect") &&
           Define<CheckRecordsSync>(env, exports, "checkRecordsSync") &&
           Define<CheckRecords>(env, exports, "checkRecords") &&
           Define<CheckLayout>(env, exports, "checkLayout") &&
           Define<CloseSync>(env, exports, "closeSync") &&
           Define<Pad>(env, exports, "pad") &&
           Define<TrainDict>(env, exports, "trainDict") &&
           Define<DecompressFrame>(env, exports, "decompressFrame") &&
           Define<SamplerCreate>(env, exports, "samplerCreate") &&
           Define<SamplerBatch>(env, exports, "samplerBatch") &&
           Define<SamplerStep>(env, exports, "samplerStep") &&
           Define<SamplerDraw>(env, exports, "samplerDraw") &&
           Define<SamplerSeekSync>(env, exports, "samplerSeekSync") &&
           Define<SamplerSeek>(env, exports, "samplerSeek") &&
           Define<SamplerClose>(env, exports, "samplerClose");
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
    if (!Pin()) {
        Napi::Error::New(env, "loaderx: the operating system refused to keep the addon loaded")
            .ThrowAsJavaScriptException();
        return exports;
    }
    Dispatcher *dispatcher = Dispatcher::Create(env);
    if (dispatcher == nullptr) return exports;
    /* Hooks run last-in first-out. This one comes after the hook that Dispatcher::Create's
     * thread-safe function added for itself, so it runs while that function still lives; finalizers
     * of handles and of the instance data follow after both. */
    if (napi_add_env_cleanup_hook(
            env, [](void *state) { static_cast<Dispatcher *>(state)->Teardown(); }, dispatcher) !=
        napi_ok) {
        ThrowRefused(env);
        return exports;
    }
    /* Deleted by the environment, as its very last act. */
    env.SetInstanceData(dispatcher);
    if (!DefineCalls(env, exports)) ThrowRefused(env);
    return exports;
}

} // namespace

} // namespace loaderx

Napi::Object InitLoaderx(Napi::Env env, Napi::Object exports) {
    return loaderx::Init(env, exports);
}

NODE_API_MODULE(loaderx, InitLoaderx)
