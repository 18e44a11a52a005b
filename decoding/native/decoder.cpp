// A few rows through the layers of a Llama in one call. A row's numbers do not depend on the other rows: each output is
// one sum in one order, and attention follows the positions of the text, not the slots of the cache.
#include <limits.h>
#include <math.h>
#include <pthread.h>

#include <algorithm>
#include <new>
#include <type_traits>

#include "team.h"
#include "vectors.h"

static const int LANES = 16;
static const int BLOCK = 32;   // outputs whose weights are interleaved
static const int AHEAD = 4096;  // bytes by which weights are prefetched from memory
static const int TOKENS_AHEAD = 32;  // the same for keys and values, in tokens
static const int LEAST_QUERIES = 4, MOST_QUERIES = 48;  // that a member takes at once
// How many sums fit into registers: rows of a product, queries of an attention, and vectors of values for each query.
#ifdef __AVX512F__
static const int MOST_ROWS = 14, MOST_TOGETHER = 6, VALUES = 4;
#else
static const int MOST_ROWS = 3, MOST_TOGETHER = 3, VALUES = 2;
#endif

struct Product {  // outputs in blocks: the first inputs of all of them, then the next
  const void* weight;
  const void* bias;  // or null
  int32_t outputs, inputs;
};
struct Layer {
  const void *attention_norm, *qk_norm, *mlp_norm;  // the first null: the input is normed already; the second: no such norm
  Product qkv, out, gate_up, down;
  int32_t window;  // tokens that a row sees, itself included; 0 for all
  int32_t number;  // of the layer in the model
};
struct Step {
  int32_t rows, hidden, heads, kv_heads, head_dim, slots, length, threads;
  float eps;
  int32_t width, wider;  // of paths; and rows by which all windows are wider
  const int32_t *depths, *ends;  // (rows): the place of each row after the text, and how much of its path it sees
  const int32_t* paths;          // (rows, width): the rows after the text that each row sees, by their places
  const void *cos, *sin;  // (places, head_dim)
  void* cache;            // (layers, 2, slots, kv_heads, head_dim): keys, then values
  const void* beside;     // (rows, hidden) that attention reads, normed, before the normed input, or null
  void* tapped;           // (rows, taps, hidden): a copy of what enters some layers
  const int32_t* taps;    // these layers, which ascend
  int32_t tap_count;
  const void *entry_norm, *beside_norm;  // of the input, or null, and of `beside`
  const void* final_norm;
  void* final;            // (rows, hidden) the output of the final norm, or null
};

// ---- products ----

// The sums of R rows and one block of outputs. A weight is read once for all rows, in the order of memory.
template <class T, int R>
static inline void block(const T* x, int row_stride, int inputs, const T* weight, Vector sums[R][2]) {
  const int step = Width<T>::step;
  Vector acc[R][2];
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) acc[r][0] = acc[r][1] = all(0.0f);
#pragma GCC unroll 2
  for (int k = 0; k < inputs; k += step) {
    const T* line = weight + (size_t)k * BLOCK;
    auto low = load_pairs(line), high = load_pairs(line + step * LANES);
    __builtin_prefetch(line + AHEAD / sizeof(T));
    __builtin_prefetch(line + AHEAD / sizeof(T) + step * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
      auto input = both(x + (size_t)r * row_stride + k);
      acc[r][0] = dot(low, input, acc[r][0]);
      acc[r][1] = dot(high, input, acc[r][1]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; r++) sums[r][0] = acc[r][0], sums[r][1] = acc[r][1];
}

// Hands `then(row, first output, sums)` every sum of R rows and the blocks from `first` to `last`.
template <class T, int R, class Then>
static inline void rows_of(const T* x, int row_stride, const Product& p, int row, int first, int last, Then then) {
  const T *weight = (const T*)p.weight, *start = x + (size_t)row * row_stride;
  for (int b = first; b < last; b++) {
    Vector sums[R][2];
    block<T, R>(start, row_stride, p.inputs, weight + (size_t)b * p.inputs * BLOCK, sums);
    for (int r = 0; r < R; r++)
      for (int half = 0; half < 2; half++) then(row + r, b * BLOCK + half * LANES, sums[r][half]);
  }
}

// Calls `use` with a number from 1 to MOST as a constant.
template <int MOST, class Use> static inline void with_constant(int number, Use use) {
  if constexpr (MOST > 1)
    if (number < MOST) return with_constant<MOST - 1>(number, use);
  use(std::integral_constant<int, MOST>());
}

// Divides `count` into groups of at most MOST, as equal as can be, and calls `use(size, first)` with each one's size as
// a constant.
template <int MOST, class Use> static inline void in_groups(int count, Use use) {
  const int groups = (count + MOST - 1) / MOST;
  for (int group = 0, first = 0; group < groups; group++) {
    const int size = (count - first + groups - group - 1) / (groups - group);
    with_constant<MOST>(size, [&](auto n) { use(n, first); });
    first += size;
  }
}

template <class T, class Then>
static void multiply(const T* x, int row_stride, int rows, const Product& p, int first, int last, Then then) {
  in_groups<MOST_ROWS>(rows, [&](auto n, int row) { rows_of<T, n>(x, row_stride, p, row, first, last, then); });
}

template <class T> static inline Vector with_bias(Vector sum, const Product& p, int output) {
  return rounded<T>(p.bias ? add(sum, load((const T*)p.bias + output)) : sum);
}

template <class T, class Then>
static void shared_product(Team& team, const T* x, int row_stride, int rows, const Product& p, Then then) {
  // Several pieces per member: one that another process delays must not delay the others for long.
  int blocks = (p.outputs + BLOCK - 1) / BLOCK, size = std::max(1, blocks / (team.size() * 6));
  team.share((blocks + size - 1) / size, [&](int i) {
    multiply(x, row_stride, rows, p, i * size, std::min(blocks, (i + 1) * size), then);
  });
}

// ---- norms ----

template <class T> static void norm(const T* x, const T* weight, T* y, int size, float eps) {
  Vector squares = all(0.0f);
  for (int i = 0; i < size; i += LANES) {
    Vector v = load(x + i);
    squares = fma(v, v, squares);
  }
  Vector scale = all(1.0f / sqrtf(lane_sum(squares) / (float)size + eps));
  for (int i = 0; i < size; i += LANES) store(y + i, mul(rounded<T>(mul(load(x + i), scale)), load(weight + i)));
}

// ---- attention ----

template <class T> struct Attention {
  const Step& step;
  const Layer& layer;
  const T* qkv;  // (rows, heads + 2 kv_heads, head_dim)
  T* out;        // (rows, heads, head_dim)

  size_t part() const { return (size_t)step.slots * step.kv_heads * step.head_dim; }
  const T* keys() const { return (const T*)step.cache + 2 * layer.number * part(); }
  const T* values() const { return keys() + part(); }
  int row_width() const { return (step.heads + 2 * step.kv_heads) * step.head_dim; }
  size_t slot_of(int position, const int32_t* path) const {
    int place = position < step.length ? position : step.length + path[position - step.length];
    return (size_t)(place < step.slots ? place : place % step.slots);
  }
  size_t at(int position, const int32_t* path, int kv) const {
    return (slot_of(position, path) * step.kv_heads + kv) * step.head_dim;
  }

  struct Query {
    int row, head, start, stop;  // it sees the positions from `start` to `stop`
    float *scores, *sums, total;
    const T* numbers;
  };

  // Sixteen adjacent positions of a row's text as columns; zeros for those before `start` and from `stop` on, whose
  // slots may hold anything.
  void read_keys(int first, int start, int stop, int kv, const int32_t* path, T* columns) const {
    static const uint32_t nothing[8] = {};
    const T* places[LANES];
    for (int j = 0; j < LANES; j++)
      places[j] = first + j < start || first + j >= stop ? nullptr : keys() + at(first + j, path, kv);
    const int numbers = 8 * Width<T>::step;  // in eight columns
    for (int d = 0; d < step.head_dim; d += numbers) {
      const void* lines[LANES];
      for (int j = 0; j < LANES; j++) lines[j] = places[j] ? (const void*)(places[j] + d) : nothing;
      transpose(lines, columns + (size_t)d * LANES);
    }
  }
  static void prefetch(const T* place, int count) {
    for (int i = 0; i < count; i += 64 / sizeof(T)) __builtin_prefetch(place + i);
  }

  // N queries at once, so that the sums of one need not wait for each other; each in the order of its dimensions.
  template <int N> void score(const Query* queries, int first, const T* columns) const {
    Vector sums[N];
    for (int n = 0; n < N; n++) sums[n] = all(0.0f);
    for (int d = 0; d < step.head_dim; d += Width<T>::step) {
      auto column = load_pairs(columns + d * LANES);
      for (int n = 0; n < N; n++) sums[n] = dot(column, both(queries[n].numbers + d), sums[n]);
    }
    const Vector scale = all(1.0f / sqrtf((float)step.head_dim));
    for (int n = 0; n < N; n++) store(queries[n].scores + first, mul(sums[n], scale));
  }

  // The scores of the positions from `begin` on, which starts a block, become shares of `total`.
  static void soften(Query& q, int begin) {
    const int end = (q.stop + LANES - 1) / LANES * LANES, first = q.start / LANES * LANES;
    auto fill_unseen = [&](float number) {
      std::fill(q.scores + begin, q.scores + q.start, number);
      std::fill(q.scores + q.stop, q.scores + end, number);
    };
    fill_unseen(-INFINITY);
    Vector most = all(-INFINITY), total = all(0.0f);
    for (int j = first; j < end; j += LANES) most = larger(most, load(q.scores + j));
    const Vector highest = all(lane_max(most));
    for (int j = first; j < end; j += LANES) store(q.scores + j, exponential(sub(load(q.scores + j), highest)));
    fill_unseen(0.0f);
    for (int j = first; j < end; j += LANES) total = add(total, load(q.scores + j));
    q.total = lane_sum(total);
  }

  // Adds the values of the positions from `from` to `stop`, each in the share that N queries have for it, to their
  // sums: C vectors of dimensions.
  template <int N, int C>
  void mix_some(const Query* queries, int from, int stop, int kv, const int32_t* path, int d) const {
    const float* scores[N];
    Vector sums[N][C];
    for (int n = 0; n < N; n++) {
      scores[n] = queries[n].scores;
      for (int c = 0; c < C; c++) sums[n][c] = load(queries[n].sums + d + c * LANES);
    }
    for (int j = from; j < stop; j++) {
      const T* line = values() + at(j, path, kv) + d;
      if (j + TOKENS_AHEAD < stop) prefetch(values() + at(j + TOKENS_AHEAD, path, kv) + d, C * LANES);
      Vector value[C];
      for (int c = 0; c < C; c++) value[c] = load(line + c * LANES);
      for (int n = 0; n < N; n++) {
        const Vector share = all(scores[n][j]);
        for (int c = 0; c < C; c++) sums[n][c] = fma(share, value[c], sums[n][c]);
      }
    }
    for (int n = 0; n < N; n++)
      for (int c = 0; c < C; c++) store(queries[n].sums + d + c * LANES, sums[n][c]);
  }
  template <int N> void mix(const Query* queries, int from, int stop, int kv, const int32_t* path) const {
    int d = 0;
    for (; d + VALUES * LANES <= step.head_dim; d += VALUES * LANES)
      mix_some<N, VALUES>(queries, from, stop, kv, path, d);
    for (; d < step.head_dim; d += LANES) mix_some<N, 1>(queries, from, stop, kv, path, d);
  }

  int score_width() const { return (step.length + step.width + 2 * LANES) / LANES * LANES; }
  size_t memory_for(int count) const { return (size_t)(LANES + count) * step.head_dim + (size_t)count * score_width(); }

  // The queries from `first` to `last` of one kv head: query heads that share it, row by row.
  void some(int kv, int first, int last, float* memory) const {
    const int size = step.head_dim, repeats = step.heads / step.kv_heads, count = last - first, width = score_width();
    T* columns = (T*)memory;
    float* rest = memory + LANES * size;
    Query queries[MOST_QUERIES];
    int lowest = INT_MAX;
    for (int i = 0; i < count; i++) {
      Query& q = queries[i];
      q.row = (first + i) / repeats;
      q.head = (first + i) % repeats * step.kv_heads + kv;
      q.stop = step.length + step.ends[q.row];
      q.start = layer.window ? std::max(0, q.stop - layer.window - step.wider) : 0;
      q.scores = rest + (size_t)i * (width + size);
      q.sums = q.scores + width;
      q.numbers = qkv + (size_t)q.row * row_width() + (size_t)q.head * size;
      std::fill(q.sums, q.sums + size, 0.0f);
      lowest = std::min(lowest, q.start);
    }
    const int begin = lowest / LANES * LANES;
    stretches(queries, count, [&](Query* some, int count, int from, int stop, const int32_t* path) {
      for (from = std::max(from, begin); from < stop; from += LANES) {
        for (int j = from + TOKENS_AHEAD; j < std::min(stop, from + TOKENS_AHEAD + LANES); j++)
          prefetch(keys() + at(j, path, kv), size);
        read_keys(from, lowest, stop, kv, path, columns);
        in_groups<MOST_TOGETHER>(count, [&](auto n, int i) { score<n>(some + i, from, columns); });
      }
    });
    for (int i = 0; i < count; i++) soften(queries[i], begin);
    stretches(queries, count, [&](Query* some, int count, int from, int stop, const int32_t* path) {
      const int first = std::max(from, lowest);
      in_groups<MOST_TOGETHER>(count, [&](auto n, int i) { mix<n>(some + i, first, stop, kv, path); });
    });
    for (int i = 0; i < count; i++) {
      const Query& q = queries[i];
      T* y = out + ((size_t)q.row * step.heads + q.head) * size;
      for (int d = 0; d < size; d += LANES) store(y + d, divide(load(q.sums + d), all(q.total)));
    }
  }

  const int32_t* path(const Query& q) const { return step.paths + (size_t)q.row * step.width; }

  // Counts the first positions that are in the same slots for all of these queries.
  int common(const Query* queries, int count) const {
    const int32_t* first = path(queries[0]);
    int shared = step.ends[queries[0].row];
    for (int i = 0; i < count; i++) {
      const int32_t* own = path(queries[i]);
      shared = std::min(shared, step.ends[queries[i].row]);
      shared = (int)(std::mismatch(first, first + shared, own).first - first);
    }
    return step.length + shared;
  }

  // Visits every query's positions in order: first the text that all have in common, in whole blocks, then, row by row,
  // the rest of the path to the row. Calls `use(queries, count, from, stop, path)`.
  template <class Use> void stretches(Query* queries, int count, Use use) const {
    const int shared = common(queries, count) / LANES * LANES;
    if (shared) use(queries, count, 0, shared, path(queries[0]));
    for (int i = 0, next; i < count; i = next) {
      for (next = i; next < count && queries[next].row == queries[i].row;) next++;
      use(queries + i, next - i, shared, queries[i].stop, path(queries[i]));
    }
  }
};

// ---- a layer ----

// Norms queries and keys if the model does, rotates them, and writes keys and values to the cache.
template <class T> static void rotate_and_write(const Step& step, const Layer& layer, T* row, int number) {
  const int size = step.head_dim, half = size / 2, keys = step.heads, values = keys + step.kv_heads;
  const size_t place = (size_t)(step.length + step.depths[number]);
  const T *cos = (const T*)step.cos + place * size, *sin = (const T*)step.sin + place * size;
  std::vector<T> swapped(size);
  for (int head = 0; head < values; head++) {
    T* x = row + (size_t)head * size;
    if (layer.qk_norm) norm(x, (const T*)layer.qk_norm + (size_t)head * size, x, size, step.eps);
    std::copy(x, x + half, swapped.begin() + half);
    std::copy(x + half, x + size, swapped.begin());
    for (int d = 0; d < size; d += LANES) {
      Vector turned = rounded<T>(mul(load(x + d), load(cos + d)));
      store(x + d, fma(load(swapped.data() + d), load(sin + d), turned));
    }
  }
  const int own = step.paths[(size_t)number * step.width + step.depths[number]];
  const size_t slot = (size_t)((step.length + own) % step.slots) * step.kv_heads * size, bytes = sizeof(T) * size;
  const size_t part = (size_t)step.slots * step.kv_heads * size;
  T* key = (T*)step.cache + 2 * layer.number * part + slot;
  memcpy(key, row + (size_t)keys * size, bytes * step.kv_heads);
  memcpy(key + part, row + (size_t)values * size, bytes * step.kv_heads);
}

template <class T> struct Buffers {
  std::vector<T> normed, qkv, attended, inner;
  std::vector<float> scores;
};

// The threads and memory that the steps of a process use, one step after the other.
struct Workers {
  Team team;
  std::mutex one_at_a_time;
  Buffers<float> floats;
  Buffers<bf16> halves;
  Buffers<float>& buffers(float) { return floats; }
  Buffers<bf16>& buffers(bf16) { return halves; }
};

// Never deleted, as its threads live as long as the process. A forked process has none of them and makes new ones.
static Workers* workers = [] {
  pthread_atfork(nullptr, nullptr, [] { workers = new Workers; });
  return new Workers;
}();

template <class T> struct Forward {
  const Step& step;
  Team& team;
  Buffers<T>& own;
  T* x;  // (rows, hidden): the input, overwritten by the output
  const int rows = step.rows, hidden = step.hidden, queries = rows * (step.heads / step.kv_heads);
  const int width = (step.heads + 2 * step.kv_heads) * step.head_dim;
  // Queries of one kv head that a member takes at once. Every piece reads its keys and values again, so there are only
  // as many pieces as give all members nearly the same work.
  const int each = std::min(MOST_QUERIES, std::max(LEAST_QUERIES, (queries + parts() - 1) / parts()));

  int parts() const {
    int parts = 1;
    while (parts * step.kv_heads % step.threads && parts * step.kv_heads < 3 * step.threads) parts++;
    return parts;
  }

  void allocate(int inner) {
    own.normed.resize((size_t)rows * hidden * 2);
    own.qkv.resize((size_t)rows * width);
    own.attended.resize((size_t)rows * step.heads * step.head_dim);
    own.inner.resize((size_t)rows * 2 * inner);
    own.scores.resize(step.threads * Attention<T>{step, {}, nullptr, nullptr}.memory_for(each));
  }

  // Copies the input of this layer to `tapped`, if the layer is tapped.
  void copy_tapped(int layer) {
    for (int at = 0; at < step.tap_count; at++) {
      if (step.taps[at] != layer) continue;
      team.share(rows, [&](int r) {
        std::copy_n(x + (size_t)r * hidden, hidden, (T*)step.tapped + ((size_t)r * step.tap_count + at) * hidden);
      });
    }
  }

  // Norms every row into its place in `to`, if there is a norm.
  void norm_all_rows(const void* weight, T* to) {
    if (!weight || !to) return;
    team.share(rows, [&](int r) {
      norm(x + (size_t)r * hidden, (const T*)weight, to + (size_t)r * hidden, hidden, step.eps);
    });
  }

  // The input of a product: the normed rows, after those of `beside`.
  void norm_rows(const void* weight, const T* beside = nullptr) {
    const size_t row_width = (size_t)hidden * (beside ? 2 : 1);
    team.share(rows, [&](int r) {
      const T* row = x + (size_t)r * hidden;
      T* place = own.normed.data() + r * row_width;
      if (beside) {
        norm(beside + (size_t)r * hidden, (const T*)step.beside_norm, place, hidden, step.eps);
        place += hidden;
      }
      if (weight) norm(row, (const T*)weight, place, hidden, step.eps);
      else std::copy_n(row, hidden, place);
    });
  }

  void add_product(const T* input, int row_stride, const Product& p) {
    shared_product(team, input, row_stride, rows, p, [&](int row, int output, Vector sum) {
      if (output >= p.outputs) return;
      T* place = x + (size_t)row * hidden + output;
      store(place, add(load(place), with_bias<T>(sum, p, output)));
    });
  }

  void attend(const Layer& layer, int member) {
    norm_rows(layer.attention_norm, (const T*)step.beside);
    shared_product(team, own.normed.data(), layer.qkv.inputs, rows, layer.qkv, [&](int row, int output, Vector sum) {
      if (output < width) store(own.qkv.data() + (size_t)row * width + output, with_bias<T>(sum, layer.qkv, output));
    });
    team.share(rows, [&](int r) { rotate_and_write(step, layer, own.qkv.data() + (size_t)r * width, r); });
    const Attention<T> attention{step, layer, own.qkv.data(), own.attended.data()};
    float* memory = own.scores.data() + member * attention.memory_for(each);
    team.share((queries + each - 1) / each * step.kv_heads, [&](int i) {
      const int first = i / step.kv_heads * each;
      attention.some(i % step.kv_heads, first, std::min(queries, first + each), memory);
    });
    add_product(own.attended.data(), step.heads * step.head_dim, layer.out);
  }

  void think(const Layer& layer) {
    const int inner = layer.down.inputs;
    T* both = own.inner.data();  // (rows, 2 inner): gates, then ups
    norm_rows(layer.mlp_norm);
    shared_product(team, own.normed.data(), hidden, rows, layer.gate_up, [&](int row, int output, Vector sum) {
      if (output < 2 * inner) store(both + (size_t)row * 2 * inner + output, with_bias<T>(sum, layer.gate_up, output));
    });
    // Overwrites the gates with the input of the down projection.
    team.share(rows, [&](int r) {
      T *gate = both + (size_t)r * 2 * inner, *up = gate + inner;
      for (int i = 0; i < inner; i += LANES) {
        Vector g = load(gate + i);
        Vector active = rounded<T>(divide(g, add(all(1.0f), exponential(sub(all(0.0f), g)))));
        store(gate + i, mul(active, load(up + i)));
      }
    });
    add_product(both, 2 * inner, layer.down);
  }
};

// Returns 0, or 1 if there is no memory for it.
template <class T> static int forward(const Step& step, const Layer* layers, int count, T* x) {
  std::lock_guard<std::mutex> lock(workers->one_at_a_time);
  Forward<T> work{step, workers->team, workers->buffers(T()), x};
  try {
    work.allocate(layers[0].down.inputs);
  } catch (const std::bad_alloc&) {
    return 1;
  }
  work.team.run(step.threads, [&](int member) {
    work.norm_all_rows(step.entry_norm, x);
    for (int i = 0; i < count; i++) {
      work.copy_tapped(layers[i].number);
      work.attend(layers[i], member);
      work.think(layers[i]);
    }
    work.copy_tapped(layers[count - 1].number + 1);
    work.norm_all_rows(step.final_norm, (T*)step.final);
  });
  return 0;
}

template <class T> static int product(const Product& p, const T* x, int rows, T* y, int threads) {
  std::lock_guard<std::mutex> lock(workers->one_at_a_time);
  Team& team = workers->team;
  team.run(threads, [&](int) {
    shared_product(team, x, p.inputs, rows, p, [&](int row, int output, Vector sum) {
      T lanes[LANES];
      store(lanes, with_bias<T>(sum, p, output));
      int count = std::min(LANES, p.outputs - output);
      if (count > 0) memcpy(y + (size_t)row * p.outputs + output, lanes, sizeof(T) * count);
    });
  });
  return 0;
}

template <class T> static int norm_all(const T* x, T* y, const T* weight, int rows, int size, float eps) {
  for (int r = 0; r < rows; r++) norm(x + (size_t)r * size, weight, y + (size_t)r * size, size, eps);
  return 0;
}

template <class T> static int gather(const T* table, int count, int size, const int64_t* rows, int wanted, T* out) {
  for (int r = 0; r < wanted; r++) {
    if (rows[r] < 0 || rows[r] >= count) return 1;
    memcpy(out + (size_t)r * size, table + (size_t)rows[r] * size, sizeof(T) * size);
  }
  return 0;
}

// ---- summaries of rows of logits ----

static inline float number(const float* x) { return *x; }
static inline float number(const bf16* x) {
  uint32_t bits = (uint32_t)*x << 16;
  float wide;
  memcpy(&wide, &bits, 4);
  return wide;
}

// The largest numbers of a row so far, in descending order; of equal ones the lowest id comes first.
struct Best {
  int count, found;
  int64_t* ids;
  float* values;

  void offer(float value, int id) {  // ids in rising order
    if (found == count && !(value > values[count - 1])) return;
    int place = found < count ? found++ : count - 1;
    for (; place > 0 && value > values[place - 1]; place--) {
      ids[place] = ids[place - 1];
      values[place] = values[place - 1];
    }
    ids[place] = id;
    values[place] = value;
  }
};

// Returns false if a number of the row is NaN.
template <class T> static bool find_best(const T* x, int size, Best best) {
  int i = 0;
  for (; i < size && (i < best.count || size - i < LANES); i++) {
    if (number(x + i) != number(x + i)) return false;
    best.offer(number(x + i), i);
  }
  for (; i < size; i += LANES) {
    const int from = std::min(i, size - LANES), seen = i - from;
    unsigned bits = above(load(x + from), all(best.values[best.count - 1])) >> seen << seen;
    for (; bits; bits &= bits - 1) {
      const int id = from + __builtin_ctz(bits);
      if (number(x + id) != number(x + id)) return false;
      best.offer(number(x + id), id);
    }
  }
  return true;
}

struct Sums {
  float total, moment;
};

// With d = (x - largest) * scale over a row: the sums of exp(d) and of exp(d) * d.
template <class T> static Sums sums_of(const T* x, int size, float largest, float scale) {
  const int stretch = 64 * LANES;  // short sums of sums lose less
  const float least = -104.0f;  // its power is 0, and so is 0 times it, unlike 0 times minus infinity
  float lanes[LANES];
  Sums found{0.0f, 0.0f};
  for (int from = 0; from < size; from += stretch) {
    const int until = std::min(size, from + stretch);
    Vector sum = all(0.0f), moment = all(0.0f);
    int i = from;
    for (; i + LANES <= until; i += LANES) {
      const Vector distance = larger(mul(sub(load(x + i), all(largest)), all(scale)), all(least));
      const Vector power = exponential(distance);
      sum = add(sum, power);
      moment = fma(power, distance, moment);
    }
    if (i < until) {
      for (int j = 0; j < LANES; j++)
        lanes[j] = i + j < until ? std::max((number(x + i + j) - largest) * scale, least) : least;
      float powers[LANES];
      store(powers, exponential(load(lanes)));
      for (int j = 0; j < until - i; j++) {
        found.total += powers[j];
        found.moment += powers[j] * lanes[j];
      }
    }
    found.total += lane_sum(sum);
    found.moment += lane_sum(moment);
  }
  return found;
}

// Returns 0, or 1 if a number is NaN. Without `totals` it only finds the largest numbers.
template <class T>
static int summarize(const T* x, int rows, int size, int count, float scale, int64_t* ids, float* values,
                     float* totals, float* moments, int threads) {
  std::lock_guard<std::mutex> lock(workers->one_at_a_time);
  Team& team = workers->team;
  std::atomic<int> spoilt{0};
  team.run(std::min(threads, rows), [&](int) {
    team.share(rows, [&](int r) {
      const T* row = x + (size_t)r * size;
      Best best{count, 0, ids + (size_t)r * count, values + (size_t)r * count};
      if (!find_best(row, size, best)) {
        spoilt = 1;
      } else if (totals) {
        const Sums sums = sums_of(row, size, best.values[0], scale);
        totals[r] = sums.total;
        moments[r] = sums.moment;
      }
    });
  });
  return spoilt;
}

// The softmax of every row. Returns 1 if a number is NaN, else 0.
template <class T> static int softmax(const T* x, int rows, int size, float* out, int threads) {
  std::lock_guard<std::mutex> lock(workers->one_at_a_time);
  Team& team = workers->team;
  std::atomic<int> spoilt{0};
  team.run(std::min(threads, rows), [&](int) {
    team.share(rows, [&](int r) {
      const T* row = x + (size_t)r * size;
      float *shares = out + (size_t)r * size, most;
      int64_t id;
      if (!find_best(row, size, Best{1, 0, &id, &most})) {
        spoilt = 1;
        return;
      }
      const float total = sums_of(row, size, most, 1.0f).total;
      int i = 0;
      for (; i + LANES <= size; i += LANES)
        store(shares + i, divide(exponential(sub(load(row + i), all(most))), all(total)));
      for (; i < size; i++) shares[i] = expf(number(row + i) - most) / total;
    });
  });
  return spoilt;
}

// ---- records ----

// Rows of scores with their summaries: the distributions of a step's nodes.
template <class T> struct Nodes {
  const T* x;
  int32_t rows, size, count;  // count: the largest scores that a summary lists
  float scale;
  const float *values, *totals, *moments;

  float largest(int64_t row) const { return values[row * count]; }
  double share(int64_t row, float score) const {
    return (float)exp((double)((score - largest(row)) * scale)) / totals[row];
  }
  double at(int64_t row, int64_t token) const { return share(row, number(x + row * size + token)); }
};

static double six_decimals(double x) { return nearbyint(x * 1e6) / 1e6; }

// The probabilities of every row's largest scores, and its entropy; then those of tokens after their parents.
template <class T>
static int describe(const Nodes<T>& nodes, const int64_t* parents, const int64_t* tokens, int pairs, double* out) {
  for (int r = 0; r < nodes.rows; r++)
    for (int i = 0; i < nodes.count; i++) *out++ = six_decimals(nodes.share(r, nodes.values[r * nodes.count + i]));
  for (int r = 0; r < nodes.rows; r++) {
    const float entropy = (float)log((double)nodes.totals[r]) - nodes.moments[r] / nodes.totals[r];
    *out++ = six_decimals(std::max(entropy, 0.0f));  // rounding can go below
  }
  for (int i = 0; i < pairs; i++) *out++ = six_decimals(nodes.at(parents[i], tokens[i]));
  return 0;
}

// The sum of min(p, q) over all tokens, where p is the distribution of a row of scores.
template <class T> static float overlap(const Nodes<T>& nodes, int64_t row, const float* q) {
  const T* x = nodes.x + row * nodes.size;
  const float most = nodes.largest(row), share = 1.0f / nodes.totals[row];
  const int stretch = 64 * LANES;
  float found = 0.0f;
  for (int from = 0; from < nodes.size; from += stretch) {
    const int until = std::min(nodes.size, from + stretch);
    Vector sum = all(0.0f);
    int i = from;
    for (; i + LANES <= until; i += LANES) {
      const Vector power = exponential(mul(sub(load(x + i), all(most)), all(nodes.scale)));
      sum = add(sum, smaller(mul(power, all(share)), load(q + i)));
    }
    for (; i < until; i++) found += std::min((float)nodes.share(row, number(x + i)), q[i]);
    found += lane_sum(sum);
  }
  return std::min(found, 1.0f);
}

// Compares distributions q, each after a node: the likeliest tokens, their probabilities in q and at the node, and the
// overlap; then the probabilities of single tokens in one of them. Returns 1 if a number of q is NaN, else 0.
template <class T>
static int compare(const Nodes<T>& nodes, const float* const* q, const int64_t* behind, int rows,
                   const int64_t* places, const int64_t* tokens, int pairs, int64_t* ids, double* out, int threads) {
  const int count = nodes.count;
  double *mine = out, *theirs = mine + (size_t)rows * count, *overlaps = theirs + (size_t)rows * count;
  for (int i = 0; i < pairs; i++) overlaps[rows + i] = six_decimals(q[places[i]][tokens[i]]);
  std::vector<float> values((size_t)rows * count);
  std::lock_guard<std::mutex> lock(workers->one_at_a_time);
  Team& team = workers->team;
  std::atomic<int> spoilt{0};
  team.run(std::min(threads, rows), [&](int) {
    team.share(rows, [&](int r) {
      Best best{count, 0, ids + (size_t)r * count, values.data() + (size_t)r * count};
      if (!find_best(q[r], nodes.size, best)) {
        spoilt = 1;
        return;
      }
      for (int i = 0; i < count; i++) {
        mine[r * count + i] = six_decimals(best.values[i]);
        theirs[r * count + i] = six_decimals(nodes.at(behind[r], best.ids[i]));
      }
      overlaps[r] = six_decimals(overlap(nodes, behind[r], q[r]));
    });
  });
  return spoilt;
}

extern "C" {
int summarize_bfloat16(const void* x, int rows, int size, int count, float scale, int64_t* ids, float* values,
                       float* totals, float* moments, int threads) {
  return summarize((const bf16*)x, rows, size, count, scale, ids, values, totals, moments, threads);
}
int summarize_float32(const void* x, int rows, int size, int count, float scale, int64_t* ids, float* values,
                      float* totals, float* moments, int threads) {
  return summarize((const float*)x, rows, size, count, scale, ids, values, totals, moments, threads);
}
int softmax_bfloat16(const void* x, int rows, int size, float* out, int threads) {
  return softmax((const bf16*)x, rows, size, out, threads);
}
int softmax_float32(const void* x, int rows, int size, float* out, int threads) {
  return softmax((const float*)x, rows, size, out, threads);
}
int describe_bfloat16(const void* n, const int64_t* parents, const int64_t* tokens, int pairs, double* out) {
  return describe(*(const Nodes<bf16>*)n, parents, tokens, pairs, out);
}
int describe_float32(const void* n, const int64_t* parents, const int64_t* tokens, int pairs, double* out) {
  return describe(*(const Nodes<float>*)n, parents, tokens, pairs, out);
}
int compare_bfloat16(const void* n, const float* const* q, const int64_t* behind, int rows, const int64_t* places,
                     const int64_t* tokens, int pairs, int64_t* ids, double* out, int threads) {
  return compare(*(const Nodes<bf16>*)n, q, behind, rows, places, tokens, pairs, ids, out, threads);
}
int compare_float32(const void* n, const float* const* q, const int64_t* behind, int rows, const int64_t* places,
                    const int64_t* tokens, int pairs, int64_t* ids, double* out, int threads) {
  return compare(*(const Nodes<float>*)n, q, behind, rows, places, tokens, pairs, ids, out, threads);
}
int forward_bfloat16(const Step* s, const Layer* layers, int n, void* x) { return forward(*s, layers, n, (bf16*)x); }
int forward_float32(const Step* s, const Layer* layers, int n, void* x) { return forward(*s, layers, n, (float*)x); }
int product_bfloat16(const Product* p, const void* x, int rows, void* y, int threads) {
  return product(*p, (const bf16*)x, rows, (bf16*)y, threads);
}
int product_float32(const Product* p, const void* x, int rows, void* y, int threads) {
  return product(*p, (const float*)x, rows, (float*)y, threads);
}
int norm_bfloat16(const void* x, void* y, const void* weight, int rows, int size, float eps) {
  return norm_all((const bf16*)x, (bf16*)y, (const bf16*)weight, rows, size, eps);
}
int gather_bfloat16(const void* table, int count, int size, const int64_t* rows, int wanted, void* out) {
  return gather((const bf16*)table, count, size, rows, wanted, (bf16*)out);
}
int gather_float32(const void* table, int count, int size, const int64_t* rows, int wanted, void* out) {
  return gather((const float*)table, count, size, rows, wanted, (float*)out);
}
int norm_float32(const void* x, void* y, const void* weight, int rows, int size, float eps) {
  return norm_all((const float*)x, (float*)y, (const float*)weight, rows, size, eps);
}
}
