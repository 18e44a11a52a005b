// A team of threads that work through a step together, phase by phase, each taking the next free piece.
//
// A phase is over when its pieces are done, whichever members did them. No member waits for one whose core another
// process occupies: that one joins the others' current phase when it can run, and if that is too late, it does nothing.
#pragma once
#include <stdint.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

static inline void pause_a_moment() { __builtin_ia32_pause(); }

class Team {
 public:
  // Runs `work(member)` on up to `size` members, the first of which is the calling thread; returns when all is done.
  // One call at a time.
  void run(int size, const std::function<void(int)>& work) {
    while ((int)members_.size() < size - 1) {
      int number = (int)members_.size() + 1;
      members_.emplace_back([this, number] { wait_for_work(number); });
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      size_ = size;
      work_ = &work;
      next_ = 0;
      call_++;
    }
    if (size > 1) called_.notify_all();
    own_phase_ = 0;
    work(0);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      work_ = nullptr;  // members that wake up now are too late
    }
    wait_until([this] { return inside_.load() == 0; });
  }

  // Gives the calling member pieces of its next phase, and returns when all of them are done.
  template <class Piece> void share(int pieces, Piece piece) {
    if (pieces == 0) return;
    const uint64_t phase = own_phase_++;
    for (uint64_t next = next_.load(); next >> 32 == phase;) {
      if ((int)(uint32_t)next == pieces) {
        wait_until([this, phase] { return next_.load() >> 32 != phase; });
        return;
      }
      if (!next_.compare_exchange_weak(next, next + 1)) continue;
      piece((int)(uint32_t)next);
      if (++done_ == pieces) {
        done_ = 0;
        next_ = (phase + 1) << 32;
        wake_sleepers();
        return;
      }
      next = next_.load();
    }
  }

  int size() const { return size_; }

 private:
  // Most waits are shorter than the time a thread takes to fall asleep or wake.
  template <class Over> static bool soon(Over over) {
    for (int i = 0; i < 4000; i++) {
      if (over()) return true;
      pause_a_moment();
    }
    return false;
  }

  template <class Over> void wait_until(Over over) {
    if (soon(over)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_++;  // before checking again: the thread that ends the wait checks for sleepers afterwards
    ended_.wait(lock, over);
    sleepers_--;
  }

  void wake_sleepers() {
    if (sleepers_.load() == 0) return;
    std::lock_guard<std::mutex> lock(mutex_);
    ended_.notify_all();
  }

  void wait_for_work(int number) {
    for (long seen = 0;;) {
      const std::function<void(int)>* work;
      soon([&] { return call_.load() != seen; });
      {
        std::unique_lock<std::mutex> lock(mutex_);
        called_.wait(lock, [&] { return call_.load() != seen; });
        seen = call_.load();
        work = work_;
        if (!work || number >= size_) continue;
        inside_++;
      }
      own_phase_ = 0;
      (*work)(number);
      inside_--;
      wake_sleepers();
    }
  }

  std::mutex mutex_;
  std::condition_variable called_, ended_;
  std::vector<std::thread> members_;
  const std::function<void(int)>* work_ = nullptr;  // of the current call
  std::atomic<long> call_{0};
  int size_ = 1;
  std::atomic<uint64_t> next_{0};  // the current phase, and its next piece
  std::atomic<int> done_{0};       // pieces of that phase
  std::atomic<int> inside_{0}, sleepers_{0};
  static inline thread_local uint32_t own_phase_ = 0;
};
