#include "work.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace loaderx {

/* What lanes and the JS thread of one environment share. It outlives whoever comes last: the
 * environment holds one reference, each job on its way through a lane another. */
class Mailbox {
  public:
    Mailbox() = default;
    Mailbox(const Mailbox &) = delete;
    Mailbox &operator=(const Mailbox &) = delete;

    void Acquire() { references_.fetch_add(1, std::memory_order_relaxed); }
    void Release() {
        if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

    /* ---- JS thread ---- */

    void Open(napi_threadsafe_function wake) { wake_ = wake; }
    napi_threadsafe_function wake() const { return wake_; }

    void Expect() {
        const std::lock_guard<std::mutex> lock(mutex_);
        running_++;
    }

    Job *TakeDone() {
        const std::lock_guard<std::mutex> lock(mutex_);
        Job *first = done_first_;
        done_first_ = done_last_ = nullptr;
        return first;
    }

    /* From here on nothing wakes the JS thread, and jobs that have not begun will not. */
    void Close() {
        const std::lock_guard<std::mutex> lock(mutex_);
        closed_.store(true, std::memory_order_relaxed);
    }

    void WaitUntilIdle() {
        std::unique_lock<std::mutex> lock(mutex_);
        idle_.wait(lock, [this] { return running_ == 0; });
    }

    /* ---- any thread ---- */

    bool closed() const { return closed_.load(std::memory_order_relaxed); }

    /* Hands the job back. Neither it nor the environment may be touched by the caller after. */
    void Post(Job *job) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const bool first = done_first_ == nullptr;
        job->done_next_ = nullptr;
        if (first)
            done_first_ = job;
        else
            done_last_->done_next_ = job;
        done_last_ = job;
        running_--;
        if (closed()) {
            if (running_ == 0) idle_.notify_all();
            return;
        }
        /* One wake per list, not per job. The function cannot be closing yet: Teardown waits for
         * this very job first, and it comes before the function's own cleanup. */
        if (first) napi_call_threadsafe_function(wake_, nullptr, napi_tsfn_nonblocking);
    }

  private:
    ~Mailbox() = default;

    std::mutex mutex_;
    std::condition_variable idle_;
    std::atomic<uint32_t> references_{1};
    std::atomic<bool> closed_{false}; /* written under the mutex */
    napi_threadsafe_function wake_ = nullptr;
    Job *done_first_ = nullptr;
    Job *done_last_ = nullptr;
    uint64_t running_ = 0; /* submitted and not posted */
};

/* ---- Job ---- */

napi_value Job::Result(napi_env env) {
    napi_value undefined;
    if (napi_get_undefined(env, &undefined) == napi_ok) return undefined;
    ThrowRefused(env);
    return nullptr;
}

napi_value Job::Pinned(napi_env env, size_t index) const {
    napi_value value = nullptr;
    if (napi_get_reference_value(env, pins_[index], &value) == napi_ok && value != nullptr)
        return value;
    ThrowRefused(env);
    return nullptr;
}

bool Job::Repin(napi_env env, size_t index, napi_value value) {
    if (pins_[index] != nullptr) napi_delete_reference(env, pins_[index]);
    pins_[index] = nullptr;
    return napi_create_reference(env, value, 1, &pins_[index]) == napi_ok;
}

/* ---- Dispatcher ---- */

Dispatcher *Dispatcher::Create(napi_env env) {
    Mailbox *mailbox = new (std::nothrow) Mailbox;
    Dispatcher *dispatcher =
        mailbox == nullptr ? nullptr : new (std::nothrow) Dispatcher(env, mailbox);
    if (dispatcher == nullptr) {
        if (mailbox != nullptr) mailbox->Release();
        ThrowFailure(env, ZR_OUT_OF_MEMORY, "no memory for the addon's state");
        return nullptr;
    }
    napi_value name;
    napi_threadsafe_function wake;
    if (napi_create_string_utf8(env, "loaderx", NAPI_AUTO_LENGTH, &name) != napi_ok ||
        napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr,
                                        dispatcher, Drain, &wake) != napi_ok) {
        delete dispatcher;
        ThrowRefused(env);
        return nullptr;
    }
    mailbox->Open(wake);
    /* Only jobs in flight keep the process alive. */
    if (napi_unref_threadsafe_function(env, wake) != napi_ok) {
        /* The function may still call Drain with this dispatcher, which therefore stays. */
        napi_release_threadsafe_function(wake, napi_tsfn_abort);
        ThrowRefused(env);
        return nullptr;
    }
    return dispatcher;
}

Dispatcher::~Dispatcher() { mailbox_->Release(); }

napi_value Dispatcher::Start(std::unique_ptr<Job> job, Handle *handle, Access access,
                             std::initializer_list<napi_value> pinned, uint32_t *cancel) {
    if (job == nullptr) {
        ThrowFailure(env_, ZR_OUT_OF_MEMORY, "no memory for an asynchronous call");
        return nullptr;
    }
    if (mailbox_->closed()) {
        ThrowFailure(env_, ZR_ABORTED, "the environment is going away");
        return nullptr;
    }
    napi_value promise;
    if (!Pin(*job, pinned)) return nullptr;
    if (napi_create_promise(env_, &job->deferred_, &promise) != napi_ok) {
        for (napi_ref pin : job->pins_)
            if (pin != nullptr) napi_delete_reference(env_, pin);
        ThrowRefused(env_);
        return nullptr;
    }
    if (cancel != nullptr) job->cancel_ = cancel;
    job->handle_ = handle;
    job->changes_ = access == Access::kChange;
    Enter(*job);

    Submit(job.release());
    return promise;
}

void Dispatcher::Submit(Job *job) {
    mailbox_->Acquire();
    mailbox_->Expect();
    job->mailbox_ = mailbox_;
    zr_error error = BlankError();
    const zr_status status = zr_executor_submit(RunOnLane, job, &error);
    if (status != ZR_OK) {
        /* No lane will see it: it goes back the way of one that ran and failed. */
        job->status_ = error.status = status;
        job->error = error;
        mailbox_->Post(job);
        mailbox_->Release();
    }
}

bool Dispatcher::Pin(Job &job, std::initializer_list<napi_value> pinned) {
    size_t index = 0;
    for (napi_value value : pinned) {
        if (value != nullptr &&
            napi_create_reference(env_, value, 1, &job.pins_[index]) != napi_ok) {
            for (napi_ref pin : job.pins_)
                if (pin != nullptr) napi_delete_reference(env_, pin);
            ThrowRefused(env_);
            return false;
        }
        index++;
    }
    return true;
}

void Dispatcher::Enter(Job &job) {
    if (unsettled_ == nullptr)
        napi_ref_threadsafe_function(env_, mailbox_->wake());
    else
        unsettled_->previous_ = &job;
    job.next_ = unsettled_;
    unsettled_ = &job;
    if (job.handle_ != nullptr) {
        job.handle_->calls_in_flight++;
        job.handle_->changing = job.changes_;
    }
}

void Dispatcher::Leave(Job &job) {
    if (job.handle_ != nullptr) {
        job.handle_->calls_in_flight--;
        job.handle_->changing = false;
    }
    for (napi_ref pin : job.pins_)
        if (pin != nullptr) napi_delete_reference(env_, pin);
    if (job.next_ != nullptr) job.next_->previous_ = job.previous_;
    if (job.previous_ != nullptr)
        job.previous_->next_ = job.next_;
    else
        unsettled_ = job.next_;
}

void Dispatcher::RunOnLane(void *context) {
    Job *job = static_cast<Job *>(context);
    Mailbox *mailbox = job->mailbox_;
    if (mailbox->closed()) {
        /* Waited for a lane until its environment went away; nobody will look at the outcome. */
        job->status_ = ZR_ABORTED;
    } else {
        job->status_ = job->Run();
    }
    mailbox->Post(job);
    mailbox->Release();
}

void Dispatcher::Drain(napi_env env, napi_value, void *context, void *) {
    /* Without an environment: the function is being freed with a wake still in its queue, and the
     * dispatcher may be gone. */
    if (env == nullptr) return;
    Dispatcher *dispatcher = static_cast<Dispatcher *>(context);
    for (Job *job = dispatcher->mailbox_->TakeDone(); job != nullptr;) {
        Job *next = job->done_next_;
        dispatcher->Settle(std::unique_ptr<Job>(job));
        job = next;
    }
    if (dispatcher->unsettled_ == nullptr)
        napi_unref_threadsafe_function(env, dispatcher->mailbox_->wake());
}

void Dispatcher::Settle(std::unique_ptr<Job> job) {
    /* In an environment that is being terminated any of these calls may fail; what matters then is
     * only that the job is unpinned and freed. */
    const Napi::HandleScope scope(env_);
    if (job->status_ != ZR_OK && job->RunAgain(env_)) return Submit(job.release());
    napi_value outcome = nullptr;
    bool fulfilled = false;
    if (job->status_ == ZR_OK) {
        outcome = job->Result(env_);
        fulfilled = outcome != nullptr;
        if (!fulfilled) outcome = TakeException(env_);
    } else {
        job->error.status = job->status_;
        outcome = NewFailure(env_, job->error);
    }
    Leave(*job);
    if (outcome == nullptr && napi_get_undefined(env_, &outcome) != napi_ok) return;
    if (fulfilled)
        napi_resolve_deferred(env_, job->deferred_, outcome);
    else
        napi_reject_deferred(env_, job->deferred_, outcome);
    /* Nothing above may surface as an uncaught exception of the event loop. */
    TakeException(env_);
}

void Dispatcher::Teardown() {
    mailbox_->Close();
    for (Job *job = unsettled_; job != nullptr; job = job->next_)
        __atomic_store_n(job->cancel_, 1u, __ATOMIC_RELAXED);
    mailbox_->WaitUntilIdle();
    while (unsettled_ != nullptr) {
        const std::unique_ptr<Job> job(unsettled_);
        Leave(*job);
    }
    mailbox_->TakeDone();
    /* No lane can reach it any more; its memory goes with its own cleanup, which comes next. */
    napi_release_threadsafe_function(mailbox_->wake(), napi_tsfn_abort);
}

} // namespace loaderx
