/* JS values <-> native values: the only place that makes or opens a handle, reads an argument, or
 * builds an error object. Everything here runs on the JS thread of its environment.
 *
 * C++ exceptions are off. A function that returns nullptr (or leaves an Args false) has left a
 * JavaScript exception pending, and the caller returns at once.
 */
#ifndef LOADERX_NAPI_VALUE_H
#define LOADERX_NAPI_VALUE_H

#include <napi.h>

#include <cstddef>
#include <cstdint>

#include "../capi/zrecord.h"

namespace loaderx {

/* What a JS number holds exactly: 2^53 - 1. */
constexpr uint64_t kSafeIntegerMax = (uint64_t{1} << 53) - 1;
constexpr uint64_t kRecordBytesMax = uint64_t{1} << 31;

static_assert(sizeof(size_t) == 8, "byte counts are computed in 64 bits");

/* ---- errors ---- */

/* A zr_error that names nothing, for calls to write into. */
zr_error BlankError();
/* Fills `error` with a failure of the shim's own. */
void SetError(zr_error *error, zr_status status, const char *message);
/* The `NativeFailure` of binding.ts; nullptr when the environment can make no more objects. */
napi_value NewFailure(napi_env env, const zr_error &error);
void ThrowFailure(napi_env env, const zr_error &error);
void ThrowFailure(napi_env env, zr_status status, const char *message);
/* After a Node-API call that failed: makes sure that an exception is pending. */
void ThrowRefused(napi_env env);
/* Takes the pending exception away; nullptr when there is none (or it is a termination). */
napi_value TakeException(napi_env env);

/* ---- handles ---- */

enum class HandleKind : uint8_t { kReader, kBuild, kJoined, kSampler };

/* What a call does to its handle. Reads may overlap each other, a change overlaps nothing. */
enum class Access : uint8_t { kRead, kChange };

/* The memory behind a JS handle. Touched on the JS thread only: lanes get `native` itself. */
struct Handle {
    void *native; /* zr_store or zs_sampler; nullptr: closed */
    uint32_t calls_in_flight; /* asynchronous calls that use `native` */
    HandleKind kind;
    bool changing; /* the call in flight is a change */

    zr_store *store() const { return static_cast<zr_store *>(native); }
    zs_sampler *sampler() const { return static_cast<zs_sampler *>(native); }
};

/* A tagged External that owns `native` from here on, also when this fails. */
napi_value WrapHandle(napi_env env, HandleKind kind, void *native);
/* Frees what the handle owns. No-op on a closed one; wants no call in flight. */
void CloseHandle(Handle *handle);

/* ---- memory ---- */

/* An ArrayBuffer of `bytes` with any content. Fails with an exception, also for want of memory. */
napi_value NewArrayBuffer(napi_env env, uint64_t bytes, uint8_t **data_out);

/* ---- arguments ---- */

/* The elements of a typed array. `data` is never nullptr, even of an empty one. */
template <class Item> struct Span {
    napi_value js;
    Item *data;
    uint64_t count;
};

/* A path's bytes, owned. */
class PathBytes {
  public:
    PathBytes() = default;
    ~PathBytes();
    PathBytes(const PathBytes &) = delete;
    PathBytes &operator=(const PathBytes &) = delete;

    uint8_t *data = nullptr;
    uint64_t bytes = 0;
};

/* How long a call uses the memory of its buffers. */
enum class Lifetime : uint8_t {
    kCall, /* until it returns */
    kJob,  /* until its promise settles; a resizable buffer could lose its pages meanwhile */
};

/* Reads the arguments of one call. The first wrong one throws; later reads then give nothing, so a
 * caller reads all of them and looks once. A read that may run JS code (a property) comes before
 * the reads of buffers, whose addresses it could make stale. */
class Args {
  public:
    Args(const Napi::CallbackInfo &info, Lifetime lifetime)
        : info_(info), env_(info.Env()), lifetime_(lifetime) {}

    explicit operator bool() const { return !failed_; }
    napi_env env() const { return env_; }
    napi_value js(size_t index) const { return info_[index]; }

    /* An open handle that this access does not disturb. */
    Handle *Reader(size_t index, Access access);
    Handle *Build(size_t index, Access access);
    Handle *Store(size_t index, Access access);
    /* A store or joined ones: what can be gathered from. */
    Handle *Source(size_t index, Access access);
    /* The stores of an array of `count` open readers; false after a wrong one. */
    bool Readers(size_t index, zr_store **stores_out, uint32_t count);
    Handle *Sampler(size_t index, Access access);
    /* Any handle of the kind, closed and busy ones too. */
    Handle *StoreInAnyState(size_t index);
    Handle *SamplerInAnyState(size_t index);

    /* A whole number min .. max; max at most 2^53 - 1. */
    uint64_t Whole(size_t index, const char *name, uint64_t min, uint64_t max);
    uint64_t BigWhole(size_t index, const char *name, uint64_t min);
    bool Boolean(size_t index, const char *name);
    /* Also after a wrong argument: then nothing more is read. */
    bool Undefined(size_t index);
    zr_ragged_geometry Geometry(size_t index);
    void Path(size_t index, PathBytes *path_out);

    Span<uint8_t> Bytes(size_t index, const char *name);
    /* The memory of each typed array of a list, where records of `header_bytes` and these bytes would
     * end; false after something else. */
    bool Records(size_t index, const char *name, uint64_t header_bytes, uint64_t count,
                 const uint8_t **items_out, uint64_t *ends_out);
    /* A Uint8Array, or all of an ArrayBuffer: a view that is made for one call costs more than the call. */
    Span<uint8_t> Memory(size_t index, const char *name);
    Span<uint64_t> Words(size_t index, const char *name);
    /* Optional ones: `js` is nullptr when undefined came. */
    Span<uint8_t> OptionalBytes(size_t index, const char *name);
    Span<uint64_t> OptionalWords(size_t index, const char *name);
    Span<uint8_t> OptionalArrayBuffer(size_t index, const char *name);
    /* Element 0 of a Uint32Array; nullptr when undefined came. */
    uint32_t *OptionalCancel(size_t index);

    /* Throws a RangeError unless `bytes` has room for `count` items of `item_bytes`. */
    void Fits(const char *name, uint64_t bytes, uint64_t count, uint64_t item_bytes);
    /* Ends (or sizes) of `count` records must be sound and stay within `bytes`. */
    void EndsWithin(const Span<uint64_t> &ends, uint64_t count, uint64_t bytes);
    void SizesWithin(const Span<uint64_t> &sizes, uint64_t bytes);
    void RangeError(const char *format, ...) __attribute__((format(printf, 2, 3)));
    void TypeError(const char *format, ...) __attribute__((format(printf, 2, 3)));

  private:
    Handle *Tagged(size_t index, const napi_type_tag &tag, const char *expected);
    Handle *Available(Handle *handle, Access access);
    uint64_t WholeValue(napi_value value, const char *name, uint64_t min, uint64_t max);
    uint64_t WholeProperty(napi_value object, const char *name, uint64_t min, uint64_t max);
    bool Keeps(napi_value array_buffer, const char *name);
    Span<uint8_t> WholeArrayBuffer(size_t index, const char *name);
    template <class Item>
    Span<Item> Elements(size_t index, napi_typedarray_type type, const char *name,
                        const char *expected);

    const Napi::CallbackInfo &info_;
    napi_env env_;
    Lifetime lifetime_;
    bool failed_ = false;
};

} // namespace loaderx

#endif
