#include "calls.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "value.h"
#include "work.h"

namespace loaderx {

namespace {

constexpr uint64_t kSchemaBytesMax = 2040;
constexpr uint64_t kShardsMax = 255;
constexpr uint64_t kLanesMax = 1024;
constexpr uint32_t kMembersMax = 1u << 16;
constexpr uint64_t kRaggedRankMax = 64;
/* Below, a ragged payload is copied on the JS thread; from here on that would hold up the event
 * loop longer than a second trip to a lane does. */
constexpr uint64_t kCopiedBytesMax = 64u << 10;
/* Faults that one check hands over. */
constexpr uint64_t kFaultsMax = 1u << 16;

Napi::Value Return(const Napi::CallbackInfo &info, napi_value value) {
    return Napi::Value(info.Env(), value);
}

/* Also the answer of a call that left an exception pending. */
Napi::Value Nothing() { return Napi::Value(); }

/* For calls that give nothing back: throws unless it went well. */
Napi::Value Done(const Args &args, zr_status status, zr_error &error) {
    if (status != ZR_OK) {
        error.status = status;
        ThrowFailure(args.env(), error);
    }
    return Nothing();
}

Napi::Value Start(const Napi::CallbackInfo &info, std::unique_ptr<Job> job, Handle *handle,
                  Access access, std::initializer_list<napi_value> pinned,
                  uint32_t *cancel = nullptr) {
    Dispatcher *dispatcher = info.Env().GetInstanceData<Dispatcher>();
    return Return(info, dispatcher->Start(std::move(job), handle, access, pinned, cancel));
}

/* ---- append ---- */

/* Of one call; the facade has some hundred. */
constexpr uint64_t kPiecesMax = 4096;

struct AppendCall {
    Handle *build;
    Span<uint8_t> records;
    Span<uint64_t> ends; /* js nullptr: none */
    uint64_t record_count;
    uint64_t record_bytes;

    zr_status Run(zr_error *error) const {
        return zr_store_append(build->store(), records.data,
                               ends.js == nullptr ? nullptr : ends.data, record_count, record_bytes,
                               error);
    }
};

AppendCall UnwrapAppend(Args &args) {
    AppendCall call = {};
    call.build = args.Build(0, Access::kChange);
    call.record_count = args.Whole(3, "recordCount", 1, kSafeIntegerMax);
    call.records = args.Bytes(1, "records");
    call.ends = args.OptionalWords(2, "ends");
    if (!args) return call;
    if (call.ends.js != nullptr) {
        args.EndsWithin(call.ends, call.record_count, call.records.count);
    } else {
        call.record_bytes = args.Whole(4, "recordBytes", 1, kRecordBytesMax);
        args.Fits("records", call.records.count, call.record_count, call.record_bytes);
    }
    return call;
}

struct AppendJob final : Job {
    AppendCall call;
    zr_status Run() override { return call.Run(&error); }
};

struct AppendFileJob final : Job {
    Handle *build = nullptr;
    PathBytes path;
    uint64_t offset_bytes = 0;
    uint64_t record_bytes = 0;
    uint64_t record_count = 0;

    zr_status Run() override {
        return zr_store_append_file(build->store(), path.data, path.bytes, offset_bytes,
                                    record_bytes, record_count, &error);
    }
};

/* ---- publish ---- */

struct PublishCall {
    Handle *build;
    uint32_t flags;
    Span<uint8_t> integrity; /* js nullptr: none */

    zr_status Run(zr_error *error) const {
        return zr_store_publish(build->store(), flags,
                                integrity.count == 0 ? nullptr : integrity.data, integrity.count,
                                error);
    }
};

PublishCall UnwrapPublish(Args &args) {
    PublishCall call = {};
    call.build = args.Build(0, Access::kChange);
    call.flags = args.Boolean(1, "durable") ? ZR_PUBLISH_DURABLE : 0;
    call.integrity = args.OptionalBytes(2, "integrity");
    return call;
}

struct PublishJob final : Job {
    PublishCall call;
    zr_status Run() override { return call.Run(&error); }
};

/* ---- gather, fixed ---- */

struct FixedCall {
    Handle *reader;
    Span<uint64_t> ids;
    uint64_t record_bytes;
    Span<uint8_t> target;

    zr_status Run(const uint32_t *cancel, zr_error *error) const {
        if (ids.count == 0) return ZR_OK;
        return zr_store_gather_fixed(reader->store(), ids.data, ids.count, record_bytes,
                                     target.data, cancel, error);
    }
};

FixedCall UnwrapFixed(Args &args) {
    FixedCall call = {};
    call.reader = args.Source(0, Access::kRead);
    call.ids = args.Words(1, "ids");
    call.record_bytes = args.Whole(2, "recordBytes", 1, kRecordBytesMax);
    call.target = args.Memory(3, "target");
    args.Fits("target", call.target.count, call.ids.count, call.record_bytes);
    return call;
}

struct FixedJob final : Job {
    FixedCall call;
    zr_status Run() override { return call.Run(cancel(), &error); }
};

/* ---- gather, ragged ---- */

struct RaggedCall {
    Handle *reader;
    Span<uint64_t> ids;
    zr_ragged_geometry geometry;
    uint64_t payload_bytes_max;
    Span<uint8_t> spare; /* js nullptr: none */

    uint64_t dim_count() const { return ids.count * geometry.ndim; }
    /* The spare buffer's memory when it will do, else nullptr. */
    uint8_t *SpareFor(uint64_t payload_bytes) const {
        const bool aligned = reinterpret_cast<uintptr_t>(spare.data) % 16 == 0;
        const bool enough = spare.js != nullptr && payload_bytes <= spare.count;
        return aligned && enough ? spare.data : nullptr;
    }
};

RaggedCall UnwrapRagged(Args &args) {
    RaggedCall call = {};
    call.reader = args.Source(0, Access::kRead);
    call.geometry = args.Geometry(2);
    call.payload_bytes_max = args.Whole(3, "payloadBytesMax", 0, kSafeIntegerMax);
    call.ids = args.Words(1, "ids");
    call.spare = args.OptionalArrayBuffer(4, "spare");
    return call;
}

/* What a ragged gather writes beside the items, as the core counts: offsets in bytes. Made by the
 * first Gather, written by each. */
class RaggedTable {
  public:
    RaggedTable() = default;
    ~RaggedTable() { free(words_); }
    RaggedTable(const RaggedTable &) = delete;
    RaggedTable &operator=(const RaggedTable &) = delete;

    zr_status Gather(const RaggedCall &call, zr_alloc alloc, void *alloc_context,
                     const uint32_t *cancel, zr_error *error) {
        uint64_t bytes;
        if (words_ == nullptr &&
            !__builtin_mul_overflow(call.ids.count + 1,
                                    (call.geometry.ndim + 1) * sizeof(uint64_t), &bytes))
            words_ = static_cast<uint64_t *>(malloc(bytes));
        if (words_ == nullptr) {
            SetError(error, ZR_OUT_OF_MEMORY, "no memory for the offsets and dimensions");
            return ZR_OUT_OF_MEMORY;
        }
        dims_ = words_ + call.ids.count + 1;
        if (call.ids.count == 0) {
            words_[0] = 0;
            return ZR_OK;
        }
        return zr_store_gather_ragged(call.reader->store(), call.ids.data, call.ids.count,
                                      &call.geometry, call.payload_bytes_max, alloc, alloc_context,
                                      words_, dims_, cancel, error);
    }

    uint64_t payload_bytes(const RaggedCall &call) const { return words_[call.ids.count]; }
    napi_value Offsets(napi_env env, const RaggedCall &call) const;
    napi_value Dims(napi_env env, const RaggedCall &call) const;

  private:
    uint64_t *words_ = nullptr;
    uint64_t *dims_ = nullptr;
};

template <class Number>
napi_value NewTypedArray(napi_env env, napi_typedarray_type type, uint64_t count,
                         Number **numbers_out) {
    uint8_t *data;
    const napi_value array_buffer = NewArrayBuffer(env, count * sizeof(Number), &data);
    if (array_buffer == nullptr) return nullptr;
    napi_value array;
    if (napi_create_typedarray(env, type, count, array_buffer, 0, &array) != napi_ok) {
        ThrowRefused(env);
        return nullptr;
    }
    *numbers_out = reinterpret_cast<Number *>(data);
    return array;
}

template <class Number>
napi_value ScaledDown(napi_env env, napi_typedarray_type type, const uint64_t *words,
                      uint64_t count, uint64_t divisor) {
    Number *numbers;
    const napi_value array = NewTypedArray(env, type, count, &numbers);
    if (array == nullptr) return nullptr;
    if ((divisor & (divisor - 1)) == 0) {
        const int shift = __builtin_ctzll(divisor);
        for (uint64_t i = 0; i < count; i++) numbers[i] = static_cast<Number>(words[i] >> shift);
    } else {
        for (uint64_t i = 0; i < count; i++) numbers[i] = static_cast<Number>(words[i] / divisor);
    }
    return array;
}

/* A Uint32Array where every number fits, else a Float64Array. */
napi_value Narrowed(napi_env env, const uint64_t *words, uint64_t count, uint64_t divisor,
                    bool fits) {
    return fits ? ScaledDown<uint32_t>(env, napi_uint32_array, words, count, divisor)
                : ScaledDown<double>(env, napi_float64_array, words, count, divisor);
}

napi_value RaggedTable::Offsets(napi_env env, const RaggedCall &call) const {
    const uint64_t item_bytes = call.geometry.item_bytes;
    const bool fits = payload_bytes(call) / item_bytes <= UINT32_MAX; /* offsets ascend */
    return Narrowed(env, words_, call.ids.count + 1, item_bytes, fits);
}

napi_value RaggedTable::Dims(napi_env env, const RaggedCall &call) const {
    uint64_t every_bit = 0;
    for (uint64_t i = 0; i < call.dim_count(); i++) every_bit |= dims_[i];
    return Narrowed(env, dims_, call.dim_count(), 1, every_bit <= UINT32_MAX);
}

/* `buffer` nullptr: an exception is pending, as after any failure here. */
napi_value NewRaggedResult(napi_env env, napi_value buffer, uint64_t payload_bytes,
                           napi_value offsets, napi_value dims) {
    if (buffer == nullptr || offsets == nullptr || dims == nullptr) return nullptr;
    napi_value result, bytes;
    if (napi_create_object(env, &result) != napi_ok ||
        napi_create_double(env, static_cast<double>(payload_bytes), &bytes) != napi_ok ||
        napi_set_named_property(env, result, "buffer", buffer) != napi_ok ||
        napi_set_named_property(env, result, "payloadBytes", bytes) != napi_ok ||
        napi_set_named_property(env, result, "offsets", offsets) != napi_ok ||
        napi_set_named_property(env, result, "dims", dims) != napi_ok) {
        ThrowRefused(env);
        return nullptr;
    }
    return result;
}

/* A synchronous gather asks on the JS thread. */
struct SyncPayload {
    napi_env env;
    const RaggedCall *call;
    napi_value buffer; /* nullptr: not asked for yet */

    static uint8_t *Alloc(void *context, uint64_t payload_bytes) {
        SyncPayload *self = static_cast<SyncPayload *>(context);
        if (uint8_t *spare = self->call->SpareFor(payload_bytes)) {
            self->buffer = self->call->spare.js;
            return spare;
        }
        uint8_t *data = nullptr;
        self->buffer = NewArrayBuffer(self->env, payload_bytes, &data);
        if (self->buffer == nullptr) TakeException(self->env); /* the core says OUT_OF_MEMORY */
        return data;
    }
};

/* Only a lane can tell how much memory the items need, only the JS thread can make an ArrayBuffer.
 * Unless the spare one does, a small payload goes through native memory and is copied. For a large
 * one the job learns the size, gets the buffer, and goes to a lane again. An external ArrayBuffer
 * would save that trip, but it cannot be transferred: postMessage copies it (Node 20) or throws
 * (Node 22), and Electron refuses to make one. */
struct RaggedJob final : Job {
    static constexpr size_t kSparePin = 2;

    RaggedCall call;
    RaggedTable table;
    zr_buffer copied = {};
    uint64_t missing_bytes = 0; /* why the last run failed; 0: for another reason */

    ~RaggedJob() override {
        if (copied.data != nullptr) zr_buffer_free(copied);
    }

    zr_status Run() override { return table.Gather(call, Alloc, this, cancel(), &error); }
    bool RunAgain(napi_env env) override;
    napi_value Result(napi_env env) override;

  private:
    static uint8_t *Alloc(void *context, uint64_t payload_bytes);
};

uint8_t *RaggedJob::Alloc(void *context, uint64_t payload_bytes) {
    RaggedJob *self = static_cast<RaggedJob *>(context);
    if (uint8_t *spare = self->call.SpareFor(payload_bytes)) return spare;
    if (payload_bytes >= kCopiedBytesMax) {
        self->missing_bytes = payload_bytes;
        return nullptr;
    }
    zr_buffer copied = {};
    if (zr_buffer_alloc(payload_bytes, &copied) != ZR_OK) return nullptr;
    self->copied = copied;
    return copied.data;
}

bool RaggedJob::RunAgain(napi_env env) {
    if (missing_bytes == 0) return false;
    uint8_t *data;
    const napi_value buffer = NewArrayBuffer(env, missing_bytes, &data);
    const bool ready = buffer != nullptr && Repin(env, kSparePin, buffer);
    if (ready)
        call.spare = {buffer, data, missing_bytes};
    else
        TakeException(env); /* the core's OUT_OF_MEMORY stands */
    missing_bytes = 0;
    return ready;
}

napi_value RaggedJob::Result(napi_env env) {
    const uint64_t payload_bytes = table.payload_bytes(call);
    const napi_value offsets = table.Offsets(env, call);
    if (offsets == nullptr) return nullptr;
    const napi_value dims = table.Dims(env, call);
    if (dims == nullptr) return nullptr;
    napi_value buffer;
    if (copied.data == nullptr && call.spare.js != nullptr) {
        buffer = Pinned(env, kSparePin);
    } else {
        uint8_t *copy;
        buffer = NewArrayBuffer(env, payload_bytes, &copy);
        if (buffer != nullptr && payload_bytes != 0) memcpy(copy, copied.data, payload_bytes);
    }
    return NewRaggedResult(env, buffer, payload_bytes, offsets, dims);
}

/* ---- check ---- */

/* What a check found, as the core counts. */
class FaultList {
  public:
    FaultList() = default;
    ~FaultList() { free(errors_); }
    FaultList(const FaultList &) = delete;
    FaultList &operator=(const FaultList &) = delete;

    /* False: no memory, which `error` says then. */
    bool Reserve(uint64_t room, zr_error *error) {
        errors_ = static_cast<zr_error *>(malloc((room + 1) * sizeof(zr_error)));
        room_ = room;
        if (errors_ == nullptr) SetError(error, ZR_OUT_OF_MEMORY, "no memory for faults");
        return errors_ != nullptr;
    }
    zr_error *errors() { return errors_; }
    uint64_t room() const { return room_; }
    uint64_t *count_out() { return &count_; }

    /* The `CheckResult` of binding.ts; nullptr: an exception is pending. */
    napi_value Result(napi_env env) const;

  private:
    zr_error *errors_ = nullptr;
    uint64_t room_ = 0;
    uint64_t count_ = 0;
};

napi_value FaultList::Result(napi_env env) const {
    const uint64_t kept = count_ < room_ ? count_ : room_;
    napi_value result, count, faults;
    if (napi_create_object(env, &result) != napi_ok ||
        napi_create_double(env, static_cast<double>(count_), &count) != napi_ok ||
        napi_create_array_with_length(env, kept, &faults) != napi_ok ||
        napi_set_named_property(env, result, "faultCount", count) != napi_ok ||
        napi_set_named_property(env, result, "faults", faults) != napi_ok) {
        ThrowRefused(env);
        return nullptr;
    }
    for (uint64_t i = 0; i < kept; i++) {
        const Napi::HandleScope scope(env);
        const napi_value fault = NewFailure(env, errors_[i]);
        if (fault == nullptr ||
            napi_set_element(env, faults, static_cast<uint32_t>(i), fault) != napi_ok) {
            ThrowRefused(env);
            return nullptr;
        }
    }
    return result;
}

struct RecordsCall {
    Handle *store;
    zr_check_options options; /* without the geometry's address, which moves with the call */
    zr_ragged_geometry geometry;
    bool is_ragged;
    uint64_t faults_max;
    Span<uint64_t> words; /* js nullptr: none */
    Span<uint8_t> skip;

    zr_status Run(FaultList *found, const uint32_t *cancel, zr_error *error) const {
        if (!found->Reserve(faults_max, error)) return ZR_OUT_OF_MEMORY;
        if (options.count == 0) return ZR_OK;
        zr_check_options asked = options;
        asked.geometry = is_ragged ? &geometry : nullptr;
        return zr_store_check_records(store->store(), &asked, found->errors(), found->room(),
                                      found->count_out(), cancel, error);
    }
};

/* Words of the blocks that hold a range of one record or more, up to its last record's. */
uint64_t WordCount(uint64_t first, uint64_t count) {
    const uint64_t last = first + count - 1;
    const uint64_t blocks = last / ZR_BLOCK_RECORDS - first / ZR_BLOCK_RECORDS;
    return blocks * (ZR_BLOCK_RECORDS + 1) + 1 + last % ZR_BLOCK_RECORDS + 1;
}

RecordsCall UnwrapRecords(Args &args) {
    RecordsCall call = {};
    call.store = args.Store(0, Access::kRead);
    call.options.first = args.Whole(1, "first", 0, kSafeIntegerMax);
    call.options.count = args.Whole(2, "count", 0, kSafeIntegerMax);
    call.is_ragged = !args.Undefined(4);
    if (call.is_ragged)
        call.geometry = args.Geometry(4);
    else
        call.options.record_bytes = args.Whole(3, "recordBytes", 1, kRecordBytesMax);
    call.options.words_use =
        static_cast<uint32_t>(args.Whole(5, "wordsUse", ZR_WORDS_NONE, ZR_WORDS_MAKE));
    call.faults_max = args.Whole(8, "faultsMax", 0, kFaultsMax);
    call.words = args.OptionalWords(6, "words");
    call.skip = args.OptionalBytes(7, "skip");
    if (!args) return call;
    zr_store_info info = {};
    zr_store_get_info(call.store->store(), &info);
    const uint64_t first = call.options.first, count = call.options.count;
    if (count > info.record_count || first > info.record_count - count)
        args.RangeError("records %llu to %llu are not all there",
                        static_cast<unsigned long long>(first),
                        static_cast<unsigned long long>(first + count));
    else if ((call.options.words_use == ZR_WORDS_NONE) != (call.words.js == nullptr))
        args.RangeError("words go with a use for them");
    else if (call.options.words_use == ZR_WORDS_MAKE && call.skip.js != nullptr)
        args.RangeError("skip does not go with words that are made");
    if (call.words.js != nullptr && count != 0)
        args.Fits("words", call.words.count * sizeof(uint64_t), WordCount(first, count),
                  sizeof(uint64_t));
    if (call.skip.js != nullptr) args.Fits("skip", call.skip.count, (count + 7) / 8, 1);
    if (!args) return call;
    call.options.words = call.words.js == nullptr ? nullptr : call.words.data;
    call.options.skip = call.skip.js == nullptr ? nullptr : call.skip.data;
    return call;
}

struct RecordsJob final : Job {
    RecordsCall call;
    FaultList found;
    zr_status Run() override { return call.Run(&found, cancel(), &error); }
    napi_value Result(napi_env env) override { return found.Result(env); }
};

struct LayoutJob final : Job {
    Handle *store = nullptr;
    Span<uint8_t> over;
    Span<uint64_t> unused;
    uint64_t faults_max = 0;
    FaultList found;

    zr_status Run() override {
        if (!found.Reserve(faults_max, &error)) return ZR_OUT_OF_MEMORY;
        return zr_store_check_layout(store->store(), over.data, unused.data, found.errors(),
                                     found.room(), found.count_out(), cancel(), &error);
    }
    napi_value Result(napi_env env) override { return found.Result(env); }
};

/* ---- dictionary ---- */

struct TrainJob final : Job {
    Span<uint8_t> samples;
    Span<uint64_t> sample_bytes;
    uint64_t dict_bytes_max = 0;
    uint64_t dict_bytes = 0;
    uint8_t *dict = nullptr;

    ~TrainJob() override { free(dict); }

    zr_status Run() override {
        dict = static_cast<uint8_t *>(malloc(dict_bytes_max));
        if (dict == nullptr) {
            SetError(&error, ZR_OUT_OF_MEMORY, "no memory for a dictionary");
            return ZR_OUT_OF_MEMORY;
        }
        return zr_dict_train(samples.data, sample_bytes.data, sample_bytes.count, dict,
                             dict_bytes_max, &dict_bytes, &error);
    }

    napi_value Result(napi_env env) override {
        uint8_t *copy;
        const napi_value array = NewTypedArray(env, napi_uint8_array, dict_bytes, &copy);
        if (array != nullptr) memcpy(copy, dict, dict_bytes);
        return array;
    }
};

/* ---- sampler ---- */

struct SeekJob final : Job {
    Handle *sampler = nullptr;
    uint64_t step = 0;
    zr_status Run() override { return zs_sampler_seek(sampler->sampler(), step, cancel(), &error); }
};

} // namespace

/* ---- executor ---- */

Napi::Value AbiVersion(const Napi::CallbackInfo &info) {
    return Napi::Number::New(info.Env(), zr_abi_version());
}

Napi::Value LaneCount(const Napi::CallbackInfo &info) {
    return Napi::Number::New(info.Env(), zr_executor_lanes());
}

Napi::Value SetLaneCount(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const uint64_t count = args.Whole(0, "count", 1, kLanesMax);
    if (!args) return Nothing();
    zr_error error = BlankError();
    return Done(args, zr_executor_set_lanes(static_cast<uint32_t>(count), &error), error);
}

Napi::Value PreferLargePages(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Span<uint8_t> memory = args.OptionalArrayBuffer(0, "memory");
    if (args && memory.js != nullptr) zr_memory_prefer_large_pages(memory.data, memory.count);
    return Nothing();
}

/* ---- store ---- */

Napi::Value StoreCreate(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    PathBytes path;
    args.Path(0, &path);
    const uint64_t codec = args.Whole(1, "codec", ZR_CODEC_RAW, ZR_CODEC_ZSTD_DICT);
    const uint64_t shards = args.Whole(2, "dataShards", 1, kShardsMax);
    const Span<uint8_t> schema = args.Bytes(3, "schema");
    const Span<uint8_t> dict = args.OptionalBytes(4, "dict");
    if (!args) return Nothing();
    if (schema.count < 1 || schema.count > kSchemaBytesMax)
        args.RangeError("schema must have 1 to %llu bytes",
                        static_cast<unsigned long long>(kSchemaBytesMax));
    else if ((codec == ZR_CODEC_ZSTD_DICT) != (dict.js != nullptr && dict.count != 0))
        args.RangeError("dict goes with codec 2, has a byte or more, and with no other codec");
    if (!args) return Nothing();

    zr_create_options options = {};
    options.path = path.data;
    options.path_bytes = path.bytes;
    options.schema = schema.data;
    options.schema_bytes = schema.count;
    options.dict = codec == ZR_CODEC_ZSTD_DICT ? dict.data : nullptr;
    options.dict_bytes = codec == ZR_CODEC_ZSTD_DICT ? dict.count : 0;
    options.codec = static_cast<uint32_t>(codec);
    options.data_shards = static_cast<uint32_t>(shards);
    zr_store *store = nullptr;
    zr_error error = BlankError();
    const zr_status status = zr_store_create(&options, &store, &error);
    if (status != ZR_OK) return Done(args, status, error);
    return Return(info, WrapHandle(args.env(), HandleKind::kBuild, store));
}

Napi::Value StoreOpen(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    PathBytes path;
    args.Path(0, &path);
    if (!args) return Nothing();
    zr_store *store = nullptr;
    zr_error error = BlankError();
    const zr_status status = zr_store_open(path.data, path.bytes, &store, &error);
    if (status != ZR_OK) return Done(args, status, error);
    return Return(info, WrapHandle(args.env(), HandleKind::kReader, store));
}

Napi::Value StoreJoin(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    uint32_t count = 0;
    if (napi_get_array_length(args.env(), args.js(0), &count) != napi_ok || count < 1 ||
        count > kMembersMax) {
        args.RangeError("argument 1 must be an array of 1 to %u stores", kMembersMax);
        return Nothing();
    }
    zr_store **members = static_cast<zr_store **>(malloc(count * sizeof(zr_store *)));
    zr_error error = BlankError();
    if (members == nullptr) {
        SetError(&error, ZR_OUT_OF_MEMORY, "no memory for the stores");
        return Done(args, ZR_OUT_OF_MEMORY, error);
    }
    zr_store *joined = nullptr;
    zr_status status = ZR_OK;
    const uint32_t ndim = static_cast<uint32_t>(args.Whole(2, "ndim", 0, kRaggedRankMax));
    const bool are_readers = args.Readers(0, members, count);
    const Span<uint8_t> dim_bytes = args.Bytes(1, "dimBytes");
    if (are_readers) args.Fits("dimBytes", dim_bytes.count, count, 1);
    if (args)
        status = zr_store_join(members, dim_bytes.data, count, ndim, &joined, &error);
    free(members);
    if (!args) return Nothing();
    if (status != ZR_OK) return Done(args, status, error);
    return Return(info, WrapHandle(args.env(), HandleKind::kJoined, joined));
}

Napi::Value StoreInfo(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *store = args.Source(0, Access::kRead);
    if (!args) return Nothing();
    zr_store_info store_info = {};
    zr_store_get_info(store->store(), &store_info);

    const napi_env env = args.env();
    uint8_t *copy;
    const napi_value schema =
        NewTypedArray(env, napi_uint8_array, store_info.schema_bytes, &copy);
    if (schema == nullptr) return Nothing();
    if (store_info.schema_bytes != 0) memcpy(copy, store_info.schema, store_info.schema_bytes);
    napi_value result, record_count, stored_bytes, dict_bytes, codec, data_shards;
    if (napi_create_object(env, &result) != napi_ok ||
        napi_create_bigint_uint64(env, store_info.record_count, &record_count) != napi_ok ||
        napi_create_bigint_uint64(env, store_info.stored_bytes, &stored_bytes) != napi_ok ||
        napi_create_bigint_uint64(env, store_info.dict_bytes, &dict_bytes) != napi_ok ||
        napi_create_uint32(env, store_info.codec, &codec) != napi_ok ||
        napi_create_uint32(env, store_info.data_shards, &data_shards) != napi_ok ||
        napi_set_named_property(env, result, "recordCount", record_count) != napi_ok ||
        napi_set_named_property(env, result, "storedBytes", stored_bytes) != napi_ok ||
        napi_set_named_property(env, result, "dictBytes", dict_bytes) != napi_ok ||
        napi_set_named_property(env, result, "schema", schema) != napi_ok ||
        napi_set_named_property(env, result, "codec", codec) != napi_ok ||
        napi_set_named_property(env, result, "dataShards", data_shards) != napi_ok) {
        ThrowRefused(env);
        return Nothing();
    }
    return Return(info, result);
}

Napi::Value AppendSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const AppendCall call = UnwrapAppend(args);
    if (!args) return Nothing();
    zr_error error = BlankError();
    return Done(args, call.Run(&error), error);
}

Napi::Value Append(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    const AppendCall call = UnwrapAppend(args);
    if (!args) return Nothing();
    auto job = NewJob<AppendJob>();
    if (job != nullptr) job->call = call;
    return Start(info, std::move(job), call.build, Access::kChange,
                 {args.js(0), call.records.js, call.ends.js});
}

Napi::Value AppendPiecesSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *build = args.Build(0, Access::kChange);
    const Span<uint8_t> headers = args.Bytes(1, "headers");
    const uint64_t header_bytes = args.Whole(2, "headerBytes", 1, 64 * 8);
    const uint64_t count = args.Whole(4, "recordCount", 1, kPiecesMax);
    args.Fits("headers", headers.count, count, header_bytes);
    if (!args) return Nothing();
    const std::unique_ptr<const uint8_t *[]> rests(new (std::nothrow) const uint8_t *[count]);
    const std::unique_ptr<uint64_t[]> ends(new (std::nothrow) uint64_t[count]);
    if (rests == nullptr || ends == nullptr) {
        ThrowFailure(args.env(), ZR_OUT_OF_MEMORY, "no memory for a list of records");
        return Nothing();
    }
    if (!args.Records(3, "items", header_bytes, count, rests.get(), ends.get())) return Nothing();
    zr_error error = BlankError();
    const zr_status status = zr_store_append_pieces(build->store(), headers.data, header_bytes,
                                                    rests.get(), ends.get(), count, &error);
    return Done(args, status, error);
}

Napi::Value AppendFile(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    auto job = NewJob<AppendFileJob>();
    if (job == nullptr) {
        ThrowFailure(args.env(), ZR_OUT_OF_MEMORY, "no memory for an asynchronous call");
        return Nothing();
    }
    Handle *build = args.Build(0, Access::kChange);
    job->build = build;
    args.Path(1, &job->path);
    job->offset_bytes = args.Whole(2, "offsetBytes", 0, kSafeIntegerMax);
    job->record_count = args.Whole(3, "recordCount", 1, kSafeIntegerMax);
    job->record_bytes = args.Whole(4, "recordBytes", 1, kRecordBytesMax);
    if (!args) return Nothing();
    zr_store_info store_info = {};
    zr_store_get_info(build->store(), &store_info);
    if (store_info.codec != ZR_CODEC_RAW) {
        args.RangeError("records of a file are appended to raw builds alone");
        return Nothing();
    }
    return Start(info, std::move(job), build, Access::kChange, {args.js(0)});
}

Napi::Value Mark(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *build = args.Build(0, Access::kChange);
    if (args) zr_store_mark(build->store());
    return Nothing();
}

Napi::Value Rewind(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *build = args.Build(0, Access::kChange);
    if (args) zr_store_rewind(build->store());
    return Nothing();
}

Napi::Value PublishSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const PublishCall call = UnwrapPublish(args);
    if (!args) return Nothing();
    zr_error error = BlankError();
    return Done(args, call.Run(&error), error);
}

Napi::Value Publish(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    const PublishCall call = UnwrapPublish(args);
    if (!args) return Nothing();
    auto job = NewJob<PublishJob>();
    if (job != nullptr) job->call = call;
    return Start(info, std::move(job), call.build, Access::kChange,
                 {args.js(0), call.integrity.js});
}

Napi::Value GatherFixedSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const FixedCall call = UnwrapFixed(args);
    if (!args) return Nothing();
    zr_error error = BlankError();
    return Done(args, call.Run(nullptr, &error), error);
}

Napi::Value GatherFixed(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    const FixedCall call = UnwrapFixed(args);
    uint32_t *cancel = args.OptionalCancel(4);
    const bool at_once = args.Boolean(5, "atOnce");
    if (!args) return Nothing();
    if (at_once && call.target.count <= zr_store_quick_bytes(call.reader->store())) {
        zr_error error = BlankError();
        return Done(args, call.Run(cancel, &error), error);
    }
    auto job = NewJob<FixedJob>();
    if (job != nullptr) job->call = call;
    return Start(info, std::move(job), call.reader, Access::kRead,
                 {args.js(0), call.ids.js, call.target.js,
                  cancel == nullptr ? nullptr : args.js(4)},
                 cancel);
}

/* On the JS thread. `payload_bytes_max` 0: that of the call; else records that hold more are none of
 * its business, which `*too_large` says. */
Napi::Value GatherRaggedNow(const Napi::CallbackInfo &info, const Args &args, RaggedCall call,
                            uint64_t payload_bytes_max, const uint32_t *cancel, bool *too_large) {
    const napi_env env = args.env();
    const bool limited = payload_bytes_max != 0 && payload_bytes_max < call.payload_bytes_max;
    if (limited) call.payload_bytes_max = payload_bytes_max;
    RaggedTable table;
    SyncPayload payload = {env, &call, nullptr};
    zr_error error = BlankError();
    const zr_status status = table.Gather(call, SyncPayload::Alloc, &payload, cancel, &error);
    *too_large = limited && status == ZR_TOO_LARGE;
    if (*too_large) return Nothing();
    if (status != ZR_OK) return Done(args, status, error);
    if (payload.buffer == nullptr) {
        /* No items, so none were asked for. */
        uint8_t *data;
        payload.buffer =
            call.spare.js != nullptr ? call.spare.js : NewArrayBuffer(env, 0, &data);
        if (payload.buffer == nullptr) return Nothing();
    }
    const napi_value offsets = table.Offsets(env, call);
    if (offsets == nullptr) return Nothing();
    const napi_value dims = table.Dims(env, call);
    const uint64_t payload_bytes = table.payload_bytes(call);
    return Return(info, NewRaggedResult(env, payload.buffer, payload_bytes, offsets, dims));
}

Napi::Value GatherRaggedSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const RaggedCall call = UnwrapRagged(args);
    if (!args) return Nothing();
    bool too_large;
    return GatherRaggedNow(info, args, call, 0, nullptr, &too_large);
}

Napi::Value GatherRagged(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    const RaggedCall call = UnwrapRagged(args);
    uint32_t *cancel = args.OptionalCancel(5);
    const bool at_once = args.Boolean(6, "atOnce");
    if (!args) return Nothing();
    const uint64_t quick_bytes = at_once ? zr_store_quick_bytes(call.reader->store()) : 0;
    if (quick_bytes >= call.ids.count * call.geometry.item_bytes && quick_bytes != 0) {
        bool too_large;
        const Napi::Value result =
            GatherRaggedNow(info, args, call, quick_bytes, cancel, &too_large);
        if (!too_large) return result;
    }
    auto job = NewJob<RaggedJob>();
    if (job != nullptr) job->call = call;
    static_assert(RaggedJob::kSparePin == 2, "the place of spare below");
    return Start(info, std::move(job), call.reader, Access::kRead,
                 {args.js(0), call.ids.js, call.spare.js, cancel == nullptr ? nullptr : args.js(5)},
                 cancel);
}

Napi::Value LogicalBytesSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *reader = args.Source(0, Access::kRead);
    const Span<uint64_t> ids = args.Words(1, "ids");
    if (!args) return Nothing();
    uint64_t *bytes;
    const napi_value result = NewTypedArray(args.env(), napi_biguint64_array, ids.count, &bytes);
    if (result == nullptr) return Nothing();
    if (ids.count != 0) {
        zr_error error = BlankError();
        const zr_status status = zr_store_logical_bytes(reader->store(), ids.data, ids.count,
                                                        bytes, nullptr, &error);
        if (status != ZR_OK) return Done(args, status, error);
    }
    return Return(info, result);
}

/* ---- check ---- */

Napi::Value StorePage(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *store = args.Store(0, Access::kRead);
    if (!args) return Nothing();
    uint8_t *page;
    const napi_value result = NewTypedArray(args.env(), napi_uint8_array, ZR_PAGE_BYTES, &page);
    if (result == nullptr) return Nothing();
    zr_error error = BlankError();
    const zr_status status = zr_store_page(store->store(), page, &error);
    if (status != ZR_OK) return Done(args, status, error);
    return Return(info, result);
}

Napi::Value StoreExpect(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *reader = args.Reader(0, Access::kChange);
    const Span<uint64_t> words = args.Words(1, "words");
    if (!args) return Nothing();
    zr_store_info store_info = {};
    zr_store_get_info(reader->store(), &store_info);
    const uint64_t records = store_info.record_count;
    if (words.count != (records == 0 ? 0 : WordCount(0, records))) {
        args.RangeError("words has %llu elements, which are not those of %llu records",
                        static_cast<unsigned long long>(words.count),
                        static_cast<unsigned long long>(records));
        return Nothing();
    }
    zr_error error = BlankError();
    return Done(args, zr_store_expect(reader->store(), words.data, words.count, &error), error);
}

Napi::Value CheckRecordsSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const RecordsCall call = UnwrapRecords(args);
    if (!args) return Nothing();
    FaultList found;
    zr_error error = BlankError();
    const zr_status status = call.Run(&found, nullptr, &error);
    if (status != ZR_OK) return Done(args, status, error);
    return Return(info, found.Result(args.env()));
}

Napi::Value CheckRecords(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    const RecordsCall call = UnwrapRecords(args);
    uint32_t *cancel = args.OptionalCancel(9);
    if (!args) return Nothing();
    auto job = NewJob<RecordsJob>();
    if (job != nullptr) job->call = call;
    return Start(info, std::move(job), call.store, Access::kRead,
                 {args.js(0), call.words.js, call.skip.js, cancel == nullptr ? nullptr : args.js(9)},
                 cancel);
}

Napi::Value CheckLayout(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    Handle *store = args.Store(0, Access::kRead);
    const uint64_t faults_max = args.Whole(3, "faultsMax", 0, kFaultsMax);
    const Span<uint8_t> over = args.Bytes(1, "over");
    const Span<uint64_t> unused = args.Words(2, "unused");
    uint32_t *cancel = args.OptionalCancel(4);
    if (!args) return Nothing();
    zr_store_info store_info = {};
    zr_store_get_info(store->store(), &store_info);
    args.Fits("over", over.count, (store_info.record_count + 7) / 8, 1);
    args.Fits("unused", unused.count, store_info.data_shards, 1);
    if (!args) return Nothing();
    auto job = NewJob<LayoutJob>();
    if (job != nullptr) {
        job->store = store;
        job->over = over;
        job->unused = unused;
        job->faults_max = faults_max;
    }
    return Start(info, std::move(job), store, Access::kRead,
                 {args.js(0), over.js, unused.js, cancel == nullptr ? nullptr : args.js(4)},
                 cancel);
}

namespace {

Napi::Value Close(Args &args, Handle *handle) {
    if (!args) return Nothing();
    if (handle->calls_in_flight != 0)
        ThrowFailure(args.env(), ZR_UNEXPECTED, "busy handle: an asynchronous call uses it");
    else
        CloseHandle(handle);
    return Nothing();
}

} // namespace

Napi::Value CloseSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    return Close(args, args.StoreInAnyState(0));
}

/* ---- dictionary ---- */

/* The core holds the parts against each other. */
Napi::Value Pad(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Span<uint8_t> values = args.Bytes(0, "values");
    const Span<uint64_t> dims = args.Words(1, "dims");
    const Span<uint64_t> sizes = args.Words(2, "sizes");
    const Span<uint8_t> item = args.Bytes(3, "item");
    const Span<uint8_t> target = args.Bytes(4, "target");
    const Span<uint8_t> mask = args.Bytes(5, "mask");
    if (!args) return Nothing();
    if (sizes.count == 0 || sizes.count > UINT8_MAX || item.count == 0 ||
        dims.count % sizes.count != 0) {
        args.RangeError("sizes, item and dims do not fit each other");
        return Nothing();
    }
    zr_pad_request request = {};
    request.values = values.data;
    request.values_bytes = values.count;
    request.dims = dims.data;
    request.record_count = dims.count / sizes.count;
    request.sizes = sizes.data;
    request.item = item.data;
    request.item_bytes = item.count;
    request.target = target.data;
    request.target_bytes = target.count;
    request.mask = mask.data;
    request.mask_bytes = mask.count;
    request.ndim = static_cast<uint32_t>(sizes.count);
    zr_error error = BlankError();
    return Done(args, zr_pad(&request, &error), error);
}

Napi::Value TrainDict(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    const uint64_t dict_bytes_max = args.Whole(2, "dictBytesMax", 1, kRecordBytesMax);
    const Span<uint8_t> samples = args.Bytes(0, "samples");
    const Span<uint64_t> sample_bytes = args.Words(1, "sampleBytes");
    args.SizesWithin(sample_bytes, samples.count);
    if (!args) return Nothing();
    auto job = NewJob<TrainJob>();
    if (job != nullptr) {
        job->samples = samples;
        job->sample_bytes = sample_bytes;
        job->dict_bytes_max = dict_bytes_max;
    }
    return Start(info, std::move(job), nullptr, Access::kRead, {samples.js, sample_bytes.js});
}

Napi::Value DecompressFrame(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Span<uint8_t> source = args.Bytes(0, "source");
    const Span<uint8_t> target = args.Bytes(1, "target");
    if (!args) return Nothing();
    if (source.count == 0 || target.count == 0) {
        args.RangeError("source and target have bytes");
        return Nothing();
    }
    uint64_t written = 0;
    zr_error error = BlankError();
    const zr_status status = zr_frame_decompress(source.data, source.count, target.data,
                                                 target.count, &written, &error);
    if (status != ZR_OK) return Done(args, status, error);
    return Napi::Number::New(info.Env(), static_cast<double>(written));
}

/* ---- sampler ---- */

Napi::Value SamplerCreate(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    zs_options options = {};
    options.length = args.BigWhole(0, "length", 1);
    options.batch_size = args.BigWhole(1, "batchSize", 1);
    options.seed = args.BigWhole(2, "seed", 0);
    options.mode = static_cast<uint32_t>(args.Whole(3, "mode", ZS_SEQUENTIAL, ZS_CYCLIC));
    options.stream = static_cast<uint32_t>(args.Whole(4, "stream", ZS_STREAM_2_4, ZS_STREAM_2_8));
    if (!args) return Nothing();
    if (options.stream != ZS_STREAM_2_4 && options.stream != ZS_STREAM_2_8) {
        args.RangeError("stream must be 24 or 28, not %u", options.stream);
        return Nothing();
    }
    zs_sampler *sampler = nullptr;
    zr_error error = BlankError();
    const zr_status status = zs_sampler_create(&options, &sampler, &error);
    if (status != ZR_OK) return Done(args, status, error);
    return Return(info, WrapHandle(args.env(), HandleKind::kSampler, sampler));
}

Napi::Value SamplerBatch(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *sampler = args.Sampler(0, Access::kRead);
    if (!args) return Nothing();
    return Napi::Number::New(info.Env(), static_cast<double>(zs_sampler_batch(sampler->sampler())));
}

Napi::Value SamplerStep(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *sampler = args.Sampler(0, Access::kRead);
    if (!args) return Nothing();
    napi_value step;
    if (napi_create_bigint_uint64(args.env(), zs_sampler_step(sampler->sampler()), &step) !=
        napi_ok) {
        ThrowRefused(args.env());
        return Nothing();
    }
    return Return(info, step);
}

Napi::Value SamplerDraw(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *sampler = args.Sampler(0, Access::kChange);
    const Span<uint64_t> ids = args.Words(1, "ids");
    if (!args) return Nothing();
    const uint64_t batch = zs_sampler_batch(sampler->sampler());
    if (ids.count < batch) {
        args.Fits("ids", ids.count * sizeof(uint64_t), batch, sizeof(uint64_t));
        return Nothing();
    }
    zr_error error = BlankError();
    return Done(args, zs_sampler_draw(sampler->sampler(), ids.data, &error), error);
}

Napi::Value SamplerSeekSync(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    const Handle *sampler = args.Sampler(0, Access::kChange);
    const uint64_t step = args.BigWhole(1, "step", 0);
    if (!args) return Nothing();
    zr_error error = BlankError();
    return Done(args, zs_sampler_seek(sampler->sampler(), step, nullptr, &error), error);
}

Napi::Value SamplerSeek(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kJob);
    Handle *sampler = args.Sampler(0, Access::kChange);
    const uint64_t step = args.BigWhole(1, "step", 0);
    uint32_t *cancel = args.OptionalCancel(2);
    if (!args) return Nothing();
    auto job = NewJob<SeekJob>();
    if (job != nullptr) {
        job->sampler = sampler;
        job->step = step;
    }
    return Start(info, std::move(job), sampler, Access::kChange,
                 {args.js(0), cancel == nullptr ? nullptr : args.js(2)}, cancel);
}

Napi::Value SamplerClose(const Napi::CallbackInfo &info) {
    Args args(info, Lifetime::kCall);
    return Close(args, args.SamplerInAnyState(0));
}

} // namespace loaderx
