// A team of threads that work through a step together: phase by phase, each taking the next piece that nobody has.
#pragma once
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

static inline void pause_a_moment() { __builtin_ia32_pause(); }

class Team {
 public:
  // Runs `work(member)` on so many members, the calling thread the first of them; returns when all are done. One call
  // at a time.
  void run(int size, const std::function<void(int)>& work) {
    while ((int)members_.size() < size - 1) {
      int number = (int)members_.size() + 1;
      members_.emplace_back([this, number] { wait_for_work(number); });
    }
    size_ = size;
    phase_ = 0;
    waiting_ = 0;
    next_ = 0;
    left_ = size - 1;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = &work;
      call_++;
    }
    if (size > 1) called_.notify_all();
    work(0);
    for (int spins = 0; left_.load(std::memory_order_acquire) > 0; spins++) rest(spins);
  }

  // Gives the calling member pieces of the present phase, and waits at its end until all of them are done.
  template <class Piece> void share(int pieces, Piece piece) {
    for (int i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < pieces;) piece(i);
    int phase = phase_.load(std::memory_order_relaxed);
    if (waiting_.fetch_add(1, std::memory_order_acq_rel) == size_ - 1) {
      waiting_.store(0, std::memory_order_relaxed);
      next_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
    } else {
      for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; spins++) rest(spins);
    }
  }

  int size() const { return size_; }

 private:
  // Where another process has the core that a member needs, the others must not hold theirs against it.
  static void rest(int spins) {
    if (spins < 4000) pause_a_moment();
    else sched_yield();
  }

  void wait_for_work(int number) {
    for (long seen = 0;;) {
      const std::function<void(int)>* work;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        called_.wait(lock, [&] { return call_ != seen; });
        seen = call_;
        work = work_;
        if (number >= size_) continue;  // a smaller team this time
      }
      (*work)(number);
      left_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::mutex mutex_;
  std::condition_variable called_;
  std::vector<std::thread> members_;
  const std::function<void(int)>* work_ = nullptr;
  long call_ = 0;
  int size_ = 1;
  std::atomic<int> phase_{0}, waiting_{0}, next_{0}, left_{0};
};
