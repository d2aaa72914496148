#include "value.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace loaderx {

namespace {

/* Below: V8's zeroing is cheaper than a Buffer object. */
constexpr uint64_t kUnzeroedBytesMin = 4096;
/* From here on the constructor, which answers want of memory with a RangeError: the Node-API
 * functions end the process instead. Such sizes come zeroed from the kernel at no cost. */
constexpr uint64_t kConstructedBytesMin = 4u << 20;

/* Random. A handle carries one of them; no other addon's External does. */
constexpr napi_type_tag kStoreTag = {0x6bd1c2a4f0e94d17ull, 0x93a7e58c11f24b60ull};
constexpr napi_type_tag kSamplerTag = {0xd40c9fb72a6e4e83ull, 0xb85f03d6c7914a2dull};

/* Stands in for the address of an empty array, which may be nullptr. */
alignas(64) uint8_t empty_memory[64];

void FinalizeHandle(napi_env, void *data, void *) {
    /* Runs at environment teardown too: it closes native things and never calls JS. A job in
     * flight holds a strong reference, so none can be. */
    Handle *handle = static_cast<Handle *>(data);
    CloseHandle(handle);
    delete handle;
}

uint64_t ElementBytes(napi_typedarray_type type) {
    switch (type) {
    case napi_int16_array:
    case napi_uint16_array:
        return 2;
    case napi_int32_array:
    case napi_uint32_array:
    case napi_float32_array:
        return 4;
    case napi_float64_array:
    case napi_bigint64_array:
    case napi_biguint64_array:
        return 8;
    default:
        return 1;
    }
}

bool SetProperty(napi_env env, napi_value object, const char *name, napi_value value) {
    return napi_set_named_property(env, object, name, value) == napi_ok;
}

bool SetText(napi_env env, napi_value object, const char *name, const char *text, size_t bytes) {
    napi_value value;
    return napi_create_string_utf8(env, text, bytes, &value) == napi_ok &&
           SetProperty(env, object, name, value);
}

bool SetNumber(napi_env env, napi_value object, const char *name, double number) {
    napi_value value;
    return napi_create_double(env, number, &value) == napi_ok &&
           SetProperty(env, object, name, value);
}

napi_value NewUnzeroedArrayBuffer(napi_env env, uint64_t bytes, uint8_t **data_out) {
    napi_value buffer;
    void *data;
    if (napi_create_buffer(env, bytes, &data, &buffer) != napi_ok) return nullptr;
    napi_typedarray_type type;
    size_t count, byte_offset;
    napi_value array_buffer;
    if (napi_get_typedarray_info(env, buffer, &type, &count, nullptr, &array_buffer,
                                 &byte_offset) != napi_ok)
        return nullptr;
    size_t whole_bytes;
    if (napi_get_arraybuffer_info(env, array_buffer, &data, &whole_bytes) != napi_ok)
        return nullptr;
    /* Nothing promises that the memory is not a slice of a pool. */
    if (whole_bytes != bytes) return nullptr;
    *data_out = static_cast<uint8_t *>(data);
    return array_buffer;
}

napi_value ConstructArrayBuffer(napi_env env, uint64_t bytes, uint8_t **data_out) {
    napi_value global, constructor, length, array_buffer;
    if (napi_get_global(env, &global) != napi_ok ||
        napi_get_named_property(env, global, "ArrayBuffer", &constructor) != napi_ok ||
        napi_create_double(env, static_cast<double>(bytes), &length) != napi_ok ||
        napi_new_instance(env, constructor, 1, &length, &array_buffer) != napi_ok)
        return nullptr;
    void *data;
    size_t whole_bytes;
    /* A program may have put something else at the global name. */
    if (napi_get_arraybuffer_info(env, array_buffer, &data, &whole_bytes) != napi_ok ||
        whole_bytes != bytes)
        return nullptr;
    *data_out = static_cast<uint8_t *>(data);
    return array_buffer;
}

} // namespace

/* ---- errors ---- */

zr_error BlankError() {
    zr_error error; /* the rest of its 300 bytes stays unwritten: every call makes one */
    error.status = ZR_UNEXPECTED;
    error.file_kind = ZR_FILE_NONE;
    error.shard_index = ZR_NO_SHARD;
    error.part_index = ZR_NO_PART;
    error.record_id = ZR_NO_RECORD;
    error.os_code[0] = '\0';
    error.message[0] = '\0';
    return error;
}

void SetError(zr_error *error, zr_status status, const char *message) {
    *error = BlankError();
    error->status = status;
    snprintf(error->message, sizeof error->message, "%s", message);
}

napi_value NewFailure(napi_env env, const zr_error &error) {
    napi_value message, failure;
    const size_t message_bytes = strnlen(error.message, sizeof error.message);
    if (napi_create_string_utf8(env, error.message, message_bytes, &message) != napi_ok ||
        napi_create_error(env, nullptr, message, &failure) != napi_ok ||
        !SetNumber(env, failure, "status", error.status) ||
        !SetNumber(env, failure, "fileKind", error.file_kind))
        return nullptr;
    if (error.shard_index != ZR_NO_SHARD && !SetNumber(env, failure, "shard", error.shard_index))
        return nullptr;
    if (error.part_index != ZR_NO_PART && !SetNumber(env, failure, "part", error.part_index))
        return nullptr;
    if (error.record_id != ZR_NO_RECORD) {
        napi_value record;
        const bool safe = error.record_id <= kSafeIntegerMax;
        const napi_status made =
            safe ? napi_create_double(env, static_cast<double>(error.record_id), &record)
                 : napi_create_bigint_uint64(env, error.record_id, &record);
        if (made != napi_ok || !SetProperty(env, failure, "record", record)) return nullptr;
    }
    const size_t code_bytes = strnlen(error.os_code, sizeof error.os_code);
    if (code_bytes != 0 && !SetText(env, failure, "osCode", error.os_code, code_bytes))
        return nullptr;
    return failure;
}

void ThrowFailure(napi_env env, const zr_error &error) {
    const napi_value failure = NewFailure(env, error);
    if (failure == nullptr || napi_throw(env, failure) != napi_ok) ThrowRefused(env);
}

void ThrowFailure(napi_env env, zr_status status, const char *message) {
    zr_error error;
    SetError(&error, status, message);
    ThrowFailure(env, error);
}

void ThrowRefused(napi_env env) {
    const napi_extended_error_info *info = nullptr;
    napi_get_last_error_info(env, &info);
    const char *reason = info == nullptr ? nullptr : info->error_message;
    bool pending = false;
    if (napi_is_exception_pending(env, &pending) == napi_ok && pending) return;
    /* In an environment that is being torn down this fails as well; then no JS code will see the
     * call return. */
    napi_throw_error(env, nullptr, reason == nullptr ? "Node-API refused a call" : reason);
}

napi_value TakeException(napi_env env) {
    bool pending = false;
    napi_value exception;
    if (napi_is_exception_pending(env, &pending) != napi_ok || !pending) return nullptr;
    if (napi_get_and_clear_last_exception(env, &exception) != napi_ok) return nullptr;
    return exception;
}

/* ---- handles ---- */

napi_value WrapHandle(napi_env env, HandleKind kind, void *native) {
    Handle *handle = new (std::nothrow) Handle{native, 0, kind, false};
    if (handle == nullptr) {
        Handle unowned{native, 0, kind, false};
        CloseHandle(&unowned);
        ThrowFailure(env, ZR_OUT_OF_MEMORY, "no memory for a handle");
        return nullptr;
    }
    napi_value external;
    if (napi_create_external(env, handle, FinalizeHandle, nullptr, &external) != napi_ok) {
        CloseHandle(handle);
        delete handle;
        ThrowRefused(env);
        return nullptr;
    }
    /* From here on the finalizer frees it. */
    const napi_type_tag &tag = kind == HandleKind::kSampler ? kSamplerTag : kStoreTag;
    if (napi_type_tag_object(env, external, &tag) != napi_ok) {
        ThrowRefused(env);
        return nullptr;
    }
    return external;
}

void CloseHandle(Handle *handle) {
    void *native = handle->native;
    handle->native = nullptr;
    if (native == nullptr) return;
    if (handle->kind == HandleKind::kSampler)
        zs_sampler_destroy(static_cast<zs_sampler *>(native));
    else
        zr_store_close(static_cast<zr_store *>(native));
}

/* ---- memory ---- */

napi_value NewArrayBuffer(napi_env env, uint64_t bytes, uint8_t **data_out) {
    if (bytes >= kConstructedBytesMin) {
        const napi_value array_buffer = ConstructArrayBuffer(env, bytes, data_out);
        if (array_buffer != nullptr) {
            zr_memory_prefer_large_pages(*data_out, bytes);
            return array_buffer;
        }
        if (TakeException(env) != nullptr) {
            zr_error error = BlankError();
            error.status = ZR_OUT_OF_MEMORY;
            snprintf(error.message, sizeof error.message,
                     "no memory for an ArrayBuffer of %llu bytes",
                     static_cast<unsigned long long>(bytes));
            ThrowFailure(env, error);
            return nullptr;
        }
    } else if (bytes >= kUnzeroedBytesMin) {
        const napi_value array_buffer = NewUnzeroedArrayBuffer(env, bytes, data_out);
        if (array_buffer != nullptr) return array_buffer;
    }
    void *data;
    napi_value array_buffer;
    if (napi_create_arraybuffer(env, bytes, &data, &array_buffer) != napi_ok) {
        ThrowRefused(env);
        return nullptr;
    }
    *data_out = bytes == 0 ? empty_memory : static_cast<uint8_t *>(data);
    return array_buffer;
}

/* ---- arguments ---- */

PathBytes::~PathBytes() { free(data); }

void Args::TypeError(const char *format, ...) {
    if (failed_) return;
    failed_ = true;
    char message[200];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    if (napi_throw_type_error(env_, nullptr, message) != napi_ok) ThrowRefused(env_);
}

void Args::RangeError(const char *format, ...) {
    if (failed_) return;
    failed_ = true;
    char message[200];
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    if (napi_throw_range_error(env_, nullptr, message) != napi_ok) ThrowRefused(env_);
}

Handle *Args::Tagged(size_t index, const napi_type_tag &tag, const char *expected) {
    if (failed_) return nullptr;
    void *data = nullptr;
    bool matches = false;
    if (napi_get_value_external(env_, info_[index], &data) != napi_ok ||
        napi_check_object_type_tag(env_, info_[index], &tag, &matches) != napi_ok || !matches) {
        TypeError("argument %zu must be %s", index + 1, expected);
        return nullptr;
    }
    return static_cast<Handle *>(data);
}

Handle *Args::Available(Handle *handle, Access access) {
    if (handle == nullptr || failed_) return nullptr;
    const char *refusal = nullptr;
    if (handle->native == nullptr)
        refusal = "closed handle";
    else if (handle->changing || (access == Access::kChange && handle->calls_in_flight != 0))
        refusal = "busy handle: an asynchronous call uses it";
    if (refusal == nullptr) return handle;
    failed_ = true;
    ThrowFailure(env_, ZR_UNEXPECTED, refusal);
    return nullptr;
}

Handle *Args::StoreInAnyState(size_t index) { return Tagged(index, kStoreTag, "a store handle"); }

Handle *Args::SamplerInAnyState(size_t index) {
    return Tagged(index, kSamplerTag, "a sampler handle");
}

Handle *Args::Source(size_t index, Access access) {
    return Available(StoreInAnyState(index), access);
}

Handle *Args::Store(size_t index, Access access) {
    Handle *handle = Source(index, access);
    if (handle != nullptr && handle->kind == HandleKind::kJoined) {
        TypeError("argument %zu must be a store with files of its own, not joined ones", index + 1);
        return nullptr;
    }
    return handle;
}

bool Args::Readers(size_t index, zr_store **stores_out, uint32_t count) {
    for (uint32_t i = 0; i < count && !failed_; i++) {
        napi_value element;
        void *data = nullptr;
        bool matches = false;
        Handle *handle = nullptr;
        if (napi_get_element(env_, info_[index], i, &element) == napi_ok &&
            napi_get_value_external(env_, element, &data) == napi_ok &&
            napi_check_object_type_tag(env_, element, &kStoreTag, &matches) == napi_ok && matches)
            handle = static_cast<Handle *>(data);
        if (handle == nullptr || handle->kind != HandleKind::kReader)
            TypeError("argument %zu must be stores that were opened", index + 1);
        else if (Available(handle, Access::kRead) != nullptr)
            stores_out[i] = handle->store();
    }
    return !failed_;
}

Handle *Args::Reader(size_t index, Access access) {
    Handle *handle = Store(index, access);
    if (handle != nullptr && handle->kind != HandleKind::kReader) {
        TypeError("argument %zu must be a store that was opened, not a build", index + 1);
        return nullptr;
    }
    return handle;
}

Handle *Args::Build(size_t index, Access access) {
    Handle *handle = Store(index, access);
    if (handle != nullptr && handle->kind != HandleKind::kBuild) {
        TypeError("argument %zu must be a build, not a store that was opened", index + 1);
        return nullptr;
    }
    return handle;
}

Handle *Args::Sampler(size_t index, Access access) {
    return Available(SamplerInAnyState(index), access);
}

uint64_t Args::WholeValue(napi_value value, const char *name, uint64_t min, uint64_t max) {
    if (failed_) return 0;
    double number;
    if (napi_get_value_double(env_, value, &number) != napi_ok) {
        TypeError("%s must be a number", name);
        return 0;
    }
    /* Written so that NaN fails; what passes converts without loss. */
    if (number >= static_cast<double>(min) && number <= static_cast<double>(max)) {
        const uint64_t whole = static_cast<uint64_t>(number);
        if (static_cast<double>(whole) == number) return whole;
    }
    RangeError("%s must be a whole number %llu to %llu, not %.17g", name,
               static_cast<unsigned long long>(min), static_cast<unsigned long long>(max), number);
    return 0;
}

uint64_t Args::Whole(size_t index, const char *name, uint64_t min, uint64_t max) {
    return WholeValue(info_[index], name, min, max);
}

uint64_t Args::WholeProperty(napi_value object, const char *name, uint64_t min, uint64_t max) {
    if (failed_) return 0;
    napi_value value;
    if (napi_get_named_property(env_, object, name, &value) != napi_ok) {
        failed_ = true;
        ThrowRefused(env_);
        return 0;
    }
    return WholeValue(value, name, min, max);
}

uint64_t Args::BigWhole(size_t index, const char *name, uint64_t min) {
    if (failed_) return 0;
    uint64_t whole;
    bool lossless;
    if (napi_get_value_bigint_uint64(env_, info_[index], &whole, &lossless) != napi_ok) {
        TypeError("%s must be a bigint", name);
        return 0;
    }
    if (!lossless || whole < min) {
        RangeError("%s must be a bigint %llu to 2^64 - 1", name,
                   static_cast<unsigned long long>(min));
        return 0;
    }
    return whole;
}

bool Args::Boolean(size_t index, const char *name) {
    if (failed_) return false;
    bool value = false;
    if (napi_get_value_bool(env_, info_[index], &value) != napi_ok)
        TypeError("%s must be a boolean", name);
    return value;
}

zr_ragged_geometry Args::Geometry(size_t index) {
    zr_ragged_geometry geometry = {};
    if (failed_) return geometry;
    napi_valuetype type;
    if (napi_typeof(env_, info_[index], &type) != napi_ok || type != napi_object) {
        TypeError("geometry must be an object");
        return geometry;
    }
    const napi_value object = info_[index];
    geometry.ndim = static_cast<uint32_t>(WholeProperty(object, "ndim", 1, 64));
    geometry.dim_bytes = static_cast<uint32_t>(WholeProperty(object, "dimBytes", 4, 8));
    geometry.item_bytes = WholeProperty(object, "itemBytes", 1, kRecordBytesMax);
    if (geometry.dim_bytes != 4 && geometry.dim_bytes != 8)
        RangeError("dimBytes must be 4 or 8, not %u", geometry.dim_bytes);
    return geometry;
}

void Args::Path(size_t index, PathBytes *path_out) {
    if (failed_) return;
    const napi_value value = info_[index];
    napi_valuetype type;
    if (napi_typeof(env_, value, &type) != napi_ok) {
        failed_ = true;
        return ThrowRefused(env_);
    }
    Span<uint8_t> span = {};
    size_t bytes = 0;
    if (type == napi_string) {
        if (napi_get_value_string_utf8(env_, value, nullptr, 0, &bytes) != napi_ok) {
            failed_ = true;
            return ThrowRefused(env_);
        }
    } else {
        span = Elements<uint8_t>(index, napi_uint8_array, "path", "a string or a Uint8Array");
        if (failed_) return;
        bytes = span.count;
    }
    if (bytes == 0) return RangeError("path must not be empty");
    path_out->data = static_cast<uint8_t *>(malloc(bytes + 1));
    if (path_out->data == nullptr) {
        failed_ = true;
        return ThrowFailure(env_, ZR_OUT_OF_MEMORY, "no memory for a path");
    }
    path_out->bytes = bytes;
    if (type == napi_string) {
        char *text = reinterpret_cast<char *>(path_out->data);
        size_t written = 0;
        if (napi_get_value_string_utf8(env_, value, text, bytes + 1, &written) != napi_ok) {
            failed_ = true;
            return ThrowRefused(env_);
        }
        path_out->bytes = written;
    } else {
        memcpy(path_out->data, span.data, bytes);
    }
    if (memchr(path_out->data, 0, path_out->bytes) != nullptr)
        RangeError("path must not contain a NUL");
}

bool Args::Undefined(size_t index) {
    napi_valuetype type;
    return failed_ ||
           (napi_typeof(env_, info_[index], &type) == napi_ok && type == napi_undefined);
}

bool Args::Keeps(napi_value array_buffer, const char *name) {
    if (lifetime_ == Lifetime::kCall) return true;
    napi_value value;
    if (napi_get_named_property(env_, array_buffer, "resizable", &value) != napi_ok) {
        failed_ = true;
        ThrowRefused(env_);
        return false;
    }
    bool resizable = false;
    /* A SharedArrayBuffer has no such property; it only grows, in place. */
    if (napi_get_value_bool(env_, value, &resizable) == napi_ok && resizable) {
        TypeError("%s must not lie in a resizable ArrayBuffer", name);
        return false;
    }
    return true;
}

template <class Item>
Span<Item> Args::Elements(size_t index, napi_typedarray_type type, const char *name,
                          const char *expected) {
    Span<Item> span = {nullptr, reinterpret_cast<Item *>(empty_memory), 0};
    if (failed_) return span;
    napi_typedarray_type found;
    size_t count = 0, byte_offset;
    void *data = nullptr;
    napi_value array_buffer;
    if (napi_get_typedarray_info(env_, info_[index], &found, &count, &data, &array_buffer,
                                 &byte_offset) != napi_ok ||
        found != type) {
        TypeError("%s must be %s", name, expected);
        return span;
    }
    if (!Keeps(array_buffer, name)) return span;
    span.js = info_[index];
    /* A detached array reports no elements: whoever needs some finds it too short. */
    if (count == 0 || data == nullptr) return span;
    span.data = static_cast<Item *>(data);
    span.count = count;
    return span;
}

Span<uint8_t> Args::Bytes(size_t index, const char *name) {
    return Elements<uint8_t>(index, napi_uint8_array, name, "a Uint8Array");
}

bool Args::Records(size_t index, const char *name, uint64_t header_bytes, uint64_t count,
                   const uint8_t **items_out, uint64_t *ends_out) {
    uint64_t end = 0;
    for (uint64_t i = 0; i < count && !failed_; i++) {
        napi_value element;
        napi_typedarray_type type;
        size_t elements = 0;
        void *data = nullptr;
        const bool found =
            napi_get_element(env_, info_[index], static_cast<uint32_t>(i), &element) == napi_ok &&
            napi_get_typedarray_info(env_, element, &type, &elements, &data, nullptr, nullptr) == napi_ok;
        if (!found || elements == 0 || data == nullptr) {
            TypeError("%s[%llu] must be a typed array with an element", name,
                      static_cast<unsigned long long>(i));
            break;
        }
        const uint64_t bytes = header_bytes + elements * ElementBytes(type);
        if (bytes > kRecordBytesMax) {
            RangeError("%s[%llu] is too large: a record has 2 GiB at most", name,
                       static_cast<unsigned long long>(i));
            break;
        }
        items_out[i] = static_cast<const uint8_t *>(data);
        end += bytes;
        ends_out[i] = end;
    }
    return !failed_;
}

Span<uint64_t> Args::Words(size_t index, const char *name) {
    return Elements<uint64_t>(index, napi_biguint64_array, name, "a BigUint64Array");
}

Span<uint8_t> Args::OptionalBytes(size_t index, const char *name) {
    if (Undefined(index)) return {};
    return Elements<uint8_t>(index, napi_uint8_array, name, "a Uint8Array or undefined");
}

Span<uint64_t> Args::OptionalWords(size_t index, const char *name) {
    if (Undefined(index)) return {};
    return Elements<uint64_t>(index, napi_biguint64_array, name, "a BigUint64Array or undefined");
}

Span<uint8_t> Args::Memory(size_t index, const char *name) {
    if (failed_) return {};
    bool is_array_buffer = false;
    if (napi_is_arraybuffer(env_, info_[index], &is_array_buffer) == napi_ok && is_array_buffer)
        return WholeArrayBuffer(index, name);
    return Elements<uint8_t>(index, napi_uint8_array, name, "a Uint8Array or an ArrayBuffer");
}

Span<uint8_t> Args::OptionalArrayBuffer(size_t index, const char *name) {
    if (Undefined(index)) return {};
    bool is_array_buffer = false;
    if (napi_is_arraybuffer(env_, info_[index], &is_array_buffer) != napi_ok || !is_array_buffer) {
        TypeError("%s must be an ArrayBuffer or undefined", name);
        return {};
    }
    return WholeArrayBuffer(index, name);
}

Span<uint8_t> Args::WholeArrayBuffer(size_t index, const char *name) {
    Span<uint8_t> span = {nullptr, empty_memory, 0};
    if (!Keeps(info_[index], name)) return span;
    void *data = nullptr;
    size_t bytes = 0;
    if (napi_get_arraybuffer_info(env_, info_[index], &data, &bytes) != napi_ok) {
        failed_ = true;
        ThrowRefused(env_);
        return span;
    }
    span.js = info_[index];
    if (bytes == 0 || data == nullptr) return span;
    span.data = static_cast<uint8_t *>(data);
    span.count = bytes;
    return span;
}

uint32_t *Args::OptionalCancel(size_t index) {
    if (Undefined(index)) return nullptr;
    const Span<uint32_t> span =
        Elements<uint32_t>(index, napi_uint32_array, "cancel", "a Uint32Array or undefined");
    if (failed_) return nullptr;
    if (span.count == 0) RangeError("cancel must have an element");
    return span.data;
}

void Args::Fits(const char *name, uint64_t bytes, uint64_t count, uint64_t item_bytes) {
    if (failed_) return;
    uint64_t needed;
    if (__builtin_mul_overflow(count, item_bytes, &needed) || needed > bytes)
        RangeError("%s has %llu bytes, too few for %llu items of %llu", name,
                   static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(count),
                   static_cast<unsigned long long>(item_bytes));
}

void Args::EndsWithin(const Span<uint64_t> &ends, uint64_t count, uint64_t bytes) {
    if (failed_) return;
    if (ends.count < count)
        return RangeError("ends has %llu elements, not one for each of %llu records",
                          static_cast<unsigned long long>(ends.count),
                          static_cast<unsigned long long>(count));
    uint64_t start = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t end = ends.data[i];
        /* Of a descending pair the difference wraps to something huge. */
        const uint64_t record_bytes = end - start;
        if (record_bytes == 0 || record_bytes > kRecordBytesMax || end > bytes)
            return RangeError("ends[%llu] is wrong: a record has 1 byte to 2 GiB within records",
                              static_cast<unsigned long long>(i));
        start = end;
    }
}

void Args::SizesWithin(const Span<uint64_t> &sizes, uint64_t bytes) {
    if (failed_) return;
    uint64_t left = bytes;
    for (uint64_t i = 0; i < sizes.count; i++) {
        if (sizes.data[i] == 0 || sizes.data[i] > left)
            return RangeError("sampleBytes[%llu] is wrong: a sample has 1 byte or more of samples",
                              static_cast<unsigned long long>(i));
        left -= sizes.data[i];
    }
}

} // namespace loaderx
