// System calls and allocations that fail on demand. Loaded with LD_PRELOAD, this library intercepts calls to
// the C library; `faults_arm` sets which one fails. It only counts calls for files in one folder, and
// allocations in watched ranges of code, because other libraries may abort when memory runs out.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Kind { none, creating, writing, syncing, renaming, unlinking, allocating };
enum Way { once, once_half_done, from_then_on };

std::atomic<int> kind{none};
std::atomic<long> calls{0};
long failing = 0;  // the call that fails, counted from 1; 0 for none
int way = once, error_number = EIO;
char folder[PATH_MAX];
struct Range {
  uintptr_t begin, end;
} watched[64];
int n_watched = 0;

bool inside(const char* path) {
  return path && (path[0] != '/' || strncmp(path, folder, strlen(folder)) == 0);
}

bool inside(int file) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return false;
  path[length] = 0;
  return path[0] == '/' && inside(path);
}

// The number of this call if it has to fail, or 0.
long count() {
  const long now = ++calls;
  return failing && (way == from_then_on ? now >= failing : now == failing) ? now : 0;
}

template <class Place>
long fails(Kind which, Place place) {
  if (kind.load(std::memory_order_relaxed) != which) return 0;
  const int before = errno;
  const long now = inside(place) ? count() : 0;
  errno = now ? error_number : before;
  return now;
}

bool no_memory(void* caller) {
  if (kind.load(std::memory_order_relaxed) != allocating) return false;
  const auto address = reinterpret_cast<uintptr_t>(caller);
  for (int i = 0; i < n_watched; ++i)
    if (watched[i].begin <= address && address < watched[i].end) return count();
  return false;
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// A disk that fills up stores only the first half.
template <class Write>
ssize_t written(int file, size_t size, Write write) {
  const long now = fails(writing, file);
  if (!now) return write(size);
  const bool half = size > 1 && (way == once_half_done || (way == from_then_on && now == failing));
  return half ? write(size / 2) : -1;
}

}  // namespace

#define NEXT(name) static const auto real = next<decltype(&name)>(#name)

extern "C" {

void faults_arm(int what, long which, int how, int error, const char* where) {
  failing = which, way = how, error_number = error;
  snprintf(folder, sizeof folder, "%s", where);
  calls = 0;
  kind = what;
}
long faults_disarm() {
  kind = none;
  return calls;
}
void faults_watch(uintptr_t begin, uintptr_t end) {
  if (n_watched < 64) watched[n_watched++] = {begin, end};
}

// ---- Files

#define OPENED(name, place, ...)                         \
  mode_t mode = 0;                                       \
  if (flags & (O_CREAT | O_TMPFILE)) {                   \
    va_list more;                                        \
    va_start(more, flags);                               \
    mode = va_arg(more, mode_t);                         \
    va_end(more);                                        \
  }                                                      \
  NEXT(name);                                            \
  if ((flags & O_CREAT) && fails(creating, path)) return -1; \
  return real(__VA_ARGS__)

int open(const char* path, int flags, ...) { OPENED(open, path, path, flags, mode); }
int open64(const char* path, int flags, ...) { OPENED(open64, path, path, flags, mode); }
int openat(int at, const char* path, int flags, ...) { OPENED(openat, path, at, path, flags, mode); }
int openat64(int at, const char* path, int flags, ...) { OPENED(openat64, path, at, path, flags, mode); }
int mkdir(const char* path, mode_t mode) {
  NEXT(mkdir);
  return fails(creating, path) ? -1 : real(path, mode);
}

ssize_t write(int file, const void* data, size_t size) {
  NEXT(write);
  return written(file, size, [&](size_t some) { return real(file, data, some); });
}
ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
  NEXT(pwrite);
  return written(file, size, [&](size_t some) { return real(file, data, some, at); });
}
ssize_t pwrite64(int file, const void* data, size_t size, off64_t at) {
  NEXT(pwrite64);
  return written(file, size, [&](size_t some) { return real(file, data, some, at); });
}
ssize_t writev(int file, const struct iovec* pieces, int n) {
  NEXT(writev);
  return fails(writing, file) ? -1 : real(file, pieces, n);
}
int ftruncate(int file, off_t size) {
  NEXT(ftruncate);
  return fails(writing, file) ? -1 : real(file, size);
}
int ftruncate64(int file, off64_t size) {
  NEXT(ftruncate64);
  return fails(writing, file) ? -1 : real(file, size);
}

int fsync(int file) {
  NEXT(fsync);
  return fails(syncing, file) ? -1 : real(file);
}
int fdatasync(int file) {
  NEXT(fdatasync);
  return fails(syncing, file) ? -1 : real(file);
}

int rename(const char* from, const char* to) {
  NEXT(rename);
  return fails(renaming, to) ? -1 : real(from, to);
}
int renameat(int from_at, const char* from, int to_at, const char* to) {
  NEXT(renameat);
  return fails(renaming, to) ? -1 : real(from_at, from, to_at, to);
}
int unlink(const char* path) {
  NEXT(unlink);
  return fails(unlinking, path) ? -1 : real(path);
}
int unlinkat(int at, const char* path, int flags) {
  NEXT(unlinkat);
  return fails(unlinking, path) ? -1 : real(at, path, flags);
}

// ---- Memory

#define CALLER __builtin_return_address(0)
#define OR_NONE(allocation) (no_memory(CALLER) ? (errno = ENOMEM, nullptr) : (allocation))

void* malloc(size_t size) { return OR_NONE(__libc_malloc(size)); }
void* calloc(size_t n, size_t size) { return OR_NONE(__libc_calloc(n, size)); }
void* realloc(void* old, size_t size) { return OR_NONE(__libc_realloc(old, size)); }
void* memalign(size_t border, size_t size) { return OR_NONE(__libc_memalign(border, size)); }
void* aligned_alloc(size_t border, size_t size) { return OR_NONE(__libc_memalign(border, size)); }
int posix_memalign(void** found, size_t border, size_t size) {
  void* const memory = OR_NONE(__libc_memalign(border, size));
  if (!memory) return ENOMEM;
  *found = memory;
  return 0;
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t begin) {
  NEXT(mmap);
  return no_memory(CALLER) ? (errno = ENOMEM, MAP_FAILED) : real(at, size, protection, flags, file, begin);
}

}  // extern "C"

static void* or_throw(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}
void* operator new(size_t size) { return or_throw(OR_NONE(__libc_malloc(size ? size : 1))); }
void* operator new[](size_t size) { return or_throw(OR_NONE(__libc_malloc(size ? size : 1))); }
void* operator new(size_t size, std::align_val_t border) {
  return or_throw(OR_NONE(__libc_memalign(size_t(border), size)));
}
void* operator new[](size_t size, std::align_val_t border) {
  return or_throw(OR_NONE(__libc_memalign(size_t(border), size)));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return OR_NONE(__libc_malloc(size ? size : 1)); }
