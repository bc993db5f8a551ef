// The parts of OpenMP that the core uses, for the thread sanitizer. gcc's runtime (libgomp) is not built with
// it, so the sanitizer does not see how threads wait for each other, and reports false races. It sees the
// threads of this runtime, so nothing in a parallel region has to be suppressed.
//
// A region has at most one loop, with a dynamic schedule. Threads take its pieces without synchronising,
// since that would hide races between them.
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Region {
  explicit Region(int threads) : loop_end(threads) {}

  std::once_flag loop_begin;
  long end = 0, step = 0;
  std::atomic<long> next{0};
  std::barrier<> loop_end;
};

struct Place {
  Region* region = nullptr;
  int number = 0;
};

thread_local Place here;

void work(void (*body)(void*), void* data, Region& region, int number) {
  const Place before = here;
  here = {&region, number};
  body(data);
  here = before;
}

}  // namespace

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned) {
  const int count = here.region ? 1 : static_cast<int>(threads ? threads : std::thread::hardware_concurrency());
  Region region(count);
  std::vector<std::jthread> others;
  for (int number = 1; number < count; ++number)
    others.emplace_back([&, number] { work(body, data, region, number); });
  work(body, data, region, 0);
}

bool GOMP_loop_nonmonotonic_dynamic_next(long* begin, long* end) {
  Region& region = *here.region;
  *begin = region.next.fetch_add(region.step, std::memory_order_relaxed);
  *end = *begin + region.step < region.end ? *begin + region.step : region.end;
  return *begin < region.end;
}

bool GOMP_loop_nonmonotonic_dynamic_start(long first, long last, long, long chunk, long* begin, long* end) {
  Region& region = *here.region;
  std::call_once(region.loop_begin, [&] {
    region.end = last;
    region.step = chunk;
    region.next.store(first, std::memory_order_relaxed);
  });
  return GOMP_loop_nonmonotonic_dynamic_next(begin, end);
}

void GOMP_loop_end() { here.region->loop_end.arrive_and_wait(); }

void GOMP_loop_end_nowait() {}

int omp_get_thread_num() { return here.number; }
}
