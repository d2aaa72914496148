/* Which thread runs a call. A synchronous call runs where it stands; an asynchronous one is a Job:
 *
 *   JS thread   unwrap, pin the inputs, make a promise, submit            Dispatcher::Start
 *   lane        Job::Run: the blocking zr_* call, no JS value touched     Mailbox::Post
 *   JS thread   settle the promise, unpin, free; or back to a lane        Dispatcher::Drain
 *
 * libuv's pool is not used: its four threads belong to files, DNS and crypto.
 *
 * Teardown (a worker that is terminated, process.exit in a worker, the natural end): a cleanup hook
 * asks every job to give up and blocks until none is on a lane or waiting for one. Only then may V8
 * free the buffers that lanes write to. Undelivered jobs are freed there; their promises stay
 * pending, no JS code is left to see them. On the main thread process.exit and uncaught exceptions
 * run no hooks: the process ends under its lanes, and V8 frees nothing before.
 */
#ifndef LOADERX_NAPI_WORK_H
#define LOADERX_NAPI_WORK_H

#include <initializer_list>
#include <memory>
#include <new>

#include "value.h"

namespace loaderx {

class Mailbox;

/* One asynchronous call. Made, settled and freed on the JS thread. */
class Job {
  public:
    Job() : error(BlankError()) {}
    virtual ~Job() = default;
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;

    /* On a lane. Blocks as long as it takes. */
    virtual zr_status Run() = 0;
    /* On the JS thread after ZR_OK: what the promise resolves with. nullptr: an exception is
     * pending, with which the promise is rejected. */
    virtual napi_value Result(napi_env env);
    /* On the JS thread after a Run that failed: true when it made ready for another one. */
    virtual bool RunAgain(napi_env) { return false; }

  protected:
    /* Pins a value that came up late in the place of another; false: it could not. */
    bool Repin(napi_env env, size_t index, napi_value value);
    /* For zr_* calls that can be given up. The teardown writes it too. */
    const uint32_t *cancel() const { return cancel_; }
    /* An input that Start was given, by its place. */
    napi_value Pinned(napi_env env, size_t index) const;

    zr_error error;

  private:
    friend class Dispatcher;
    friend class Mailbox;

    static constexpr size_t kPinsMax = 4;

    napi_deferred deferred_ = nullptr;
    napi_ref pins_[kPinsMax] = {};
    Handle *handle_ = nullptr; /* nullptr: the call has none */
    Mailbox *mailbox_ = nullptr;
    uint32_t own_cancel_ = 0;
    uint32_t *cancel_ = &own_cancel_;
    zr_status status_ = ZR_UNEXPECTED;
    bool changes_ = false;
    Job *done_next_ = nullptr; /* the mailbox's list */
    Job *previous_ = nullptr;  /* the dispatcher's list of jobs not settled */
    Job *next_ = nullptr;
};

template <class J> std::unique_ptr<J> NewJob() {
    return std::unique_ptr<J>(new (std::nothrow) J);
}

/* Per environment: its jobs, and the way back to its JS thread. */
class Dispatcher {
  public:
    /* nullptr with an exception pending. */
    static Dispatcher *Create(napi_env env);
    ~Dispatcher();
    Dispatcher(const Dispatcher &) = delete;
    Dispatcher &operator=(const Dispatcher &) = delete;

    /* Sends the job to a lane and returns its promise; nullptr with an exception pending. Keeps
     * `pinned` (nullptr entries aside) and the handle until the promise settles. A null job is one
     * for which there was no memory. `cancel`: the caller's word in a pinned buffer, or nullptr. */
    napi_value Start(std::unique_ptr<Job> job, Handle *handle, Access access,
                     std::initializer_list<napi_value> pinned, uint32_t *cancel);

    /* The environment is going away: returns when no lane works for it any more. */
    void Teardown();

  private:
    Dispatcher(napi_env env, Mailbox *mailbox) : env_(env), mailbox_(mailbox) {}

    static void RunOnLane(void *job);
    static void Drain(napi_env env, napi_value callback, void *dispatcher, void *data);
    void Submit(Job *job);
    bool Pin(Job &job, std::initializer_list<napi_value> pinned);
    void Enter(Job &job);
    /* Unpins and unlinks: the job is nobody's but the caller's then. */
    void Leave(Job &job);
    void Settle(std::unique_ptr<Job> job);

    napi_env env_;
    Mailbox *mailbox_;
    Job *unsettled_ = nullptr;
};

} // namespace loaderx

#endif
