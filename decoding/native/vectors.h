// Sixteen floats at a time, on AVX-512 or AVX2, and the rounding of bfloat16. Every operation is written out, so that a
// result does not depend on where in the code, and with how many others, it is computed.
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t bf16;

#if defined(__AVX512F__) && defined(__AVX512BW__)
struct Vector { __m512 v; };
static inline Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
static inline void store(float* p, Vector a) { _mm512_storeu_ps(p, a.v); }
static inline Vector all(float x) { return {_mm512_set1_ps(x)}; }
static inline Vector fma(Vector a, Vector b, Vector c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
static inline Vector mul(Vector a, Vector b) { return {_mm512_mul_ps(a.v, b.v)}; }
static inline Vector add(Vector a, Vector b) { return {_mm512_add_ps(a.v, b.v)}; }
static inline Vector sub(Vector a, Vector b) { return {_mm512_sub_ps(a.v, b.v)}; }
static inline Vector divide(Vector a, Vector b) { return {_mm512_div_ps(a.v, b.v)}; }
static inline Vector larger(Vector a, Vector b) { return {_mm512_max_ps(a.v, b.v)}; }
static inline Vector smaller(Vector a, Vector b) { return {_mm512_min_ps(a.v, b.v)}; }
static inline Vector nearest(Vector a) { return {_mm512_roundscale_ps(a.v, 8)}; }
// A bit for each number that is larger than the other, or not a number.
static inline unsigned above(Vector a, Vector b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_NLE_UQ); }
static inline Vector times_power(Vector a, Vector n) { return {_mm512_scalef_ps(a.v, n.v)}; }
static inline Vector load(const bf16* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16))};
}
static inline void store(bf16* p, Vector a) {
  __m512i bits = _mm512_castps_si512(a.v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}
// Two bfloat16 of each of sixteen outputs, by two bfloat16 of one row.
struct Pairs { __m512i v; };
static inline Pairs load_pairs(const bf16* p) { return {_mm512_loadu_si512(p)}; }
static inline Pairs both(const bf16* p) { uint32_t x; memcpy(&x, p, 4); return {_mm512_set1_epi32((int)x)}; }
static inline Vector dot(Pairs a, Pairs b, Vector c) {
#ifdef __AVX512BF16__
  return {_mm512_dpbf16_ps(c.v, (__m512bh)a.v, (__m512bh)b.v)};
#else
  const __m512i high = _mm512_set1_epi32((int)0xffff0000);
  __m512 even = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(a.v, 16)),
                                _mm512_castsi512_ps(_mm512_slli_epi32(b.v, 16)), c.v);
  return {_mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(a.v, high)),
                          _mm512_castsi512_ps(_mm512_and_si512(b.v, high)), even)};
#endif
}
// Transposes sixteen lines of eight 32-bit units into eight columns of sixteen.
static inline void transpose(const void* const* lines, void* columns) {
  // Two lines side by side, so that quarters of them end up in their order.
  __m512 a[8], b[8];
  for (int i = 0; i < 8; i++) {
    const void* const* line = lines + i % 4 + i / 4 * 8;
    a[i] = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps((const float*)line[0])),
                              _mm256_loadu_ps((const float*)line[4]), 1);
  }
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; k++) {
      a[i + 2 * k] = _mm512_shuffle_ps(b[i + k], b[i + k + 2], 0x44);
      a[i + 2 * k + 1] = _mm512_shuffle_ps(b[i + k], b[i + k + 2], 0xee);
    }
  for (int k = 0; k < 4; k++) {
    _mm512_storeu_ps((float*)columns + k * 16, _mm512_shuffle_f32x4(a[k], a[k + 4], 0x88));
    _mm512_storeu_ps((float*)columns + (k + 4) * 16, _mm512_shuffle_f32x4(a[k], a[k + 4], 0xdd));
  }
}
#elif defined(__AVX2__) && defined(__FMA__)
struct Vector { __m256 a, b; };
static inline Vector load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline void store(float* p, Vector x) { _mm256_storeu_ps(p, x.a); _mm256_storeu_ps(p + 8, x.b); }
static inline Vector all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
static inline Vector fma(Vector x, Vector y, Vector z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
static inline Vector mul(Vector x, Vector y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
static inline Vector add(Vector x, Vector y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
static inline Vector sub(Vector x, Vector y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
static inline Vector divide(Vector x, Vector y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
static inline Vector larger(Vector x, Vector y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
static inline Vector smaller(Vector x, Vector y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
static inline Vector nearest(Vector x) { return {_mm256_round_ps(x.a, 8), _mm256_round_ps(x.b, 8)}; }
static inline unsigned above(Vector x, Vector y) {
  unsigned low = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.a, y.a, _CMP_NLE_UQ));
  return low | (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.b, y.b, _CMP_NLE_UQ)) << 8;
}
static inline __m256 times_power8(__m256 a, __m256 n) {
  // Through two factors, because the smallest results are below the smallest power of two that is a normal number.
  __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
  __m256i rest = _mm256_sub_epi32(whole, half);
  a = _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
  return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}
static inline Vector times_power(Vector x, Vector n) { return {times_power8(x.a, n.a), times_power8(x.b, n.b)}; }
static inline __m256 widened(const bf16* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
}
static inline Vector load(const bf16* p) { return {widened(p), widened(p + 8)}; }
static inline __m256i rounded8(__m256 x) {
  __m256i bits = _mm256_castps_si256(x);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
}
static inline void store(bf16* p, Vector x) {
  __m256i packed = _mm256_packus_epi32(rounded8(x.a), rounded8(x.b));
  _mm256_storeu_si256((__m256i*)p, _mm256_permute4x64_epi64(packed, 0xd8));
}
struct Pairs { __m256i a, b; };
static inline Pairs load_pairs(const bf16* p) {
  return {_mm256_loadu_si256((const __m256i*)p), _mm256_loadu_si256((const __m256i*)(p + 16))};
}
static inline Pairs both(const bf16* p) {
  uint32_t x;
  memcpy(&x, p, 4);
  return {_mm256_set1_epi32((int)x), _mm256_set1_epi32((int)x)};
}
static inline __m256 dot8(__m256i a, __m256i b, __m256 c) {
  const __m256i high = _mm256_set1_epi32((int)0xffff0000);
  c = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)), c);
  return _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(a, high)),
                         _mm256_castsi256_ps(_mm256_and_si256(b, high)), c);
}
static inline Vector dot(Pairs x, Pairs y, Vector z) { return {dot8(x.a, y.a, z.a), dot8(x.b, y.b, z.b)}; }
static inline void transpose(const void* const* lines, void* columns) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) ((uint32_t*)columns)[j * 16 + i] = ((const uint32_t*)lines[i])[j];
}
#else
#error "needs AVX-512 or AVX2"
#endif

// Products of float32 go number by number, those of bfloat16 in pairs; `Step` is how many inputs one dot takes.
static inline Vector load_pairs(const float* p) { return load(p); }
static inline Vector both(const float* p) { return all(*p); }
static inline Vector dot(Vector a, Vector b, Vector c) { return fma(a, b, c); }
template <class T> struct Width;
template <> struct Width<float> { static const int step = 1; };
template <> struct Width<bf16> { static const int step = 2; };

static inline float lane_sum(Vector a) {
  float lanes[16];
  store(lanes, a);
  for (int half = 8; half; half /= 2)
    for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
  return lanes[0];
}
static inline float lane_max(Vector a) {
  float lanes[16], most;
  store(lanes, a);
  most = lanes[0];
  for (int i = 1; i < 16; i++) most = lanes[i] > most ? lanes[i] : most;
  return most;
}
// Rounds as if a number were stored as type T and read again.
template <class T> static inline Vector rounded(Vector a);
template <> inline Vector rounded<float>(Vector a) { return a; }
template <> inline Vector rounded<bf16>(Vector a) {
  bf16 kept[16];
  store(kept, a);
  return load(kept);
}
// e to the x, to within two units in the last place; 0 far below.
static inline Vector exponential(Vector x) {
  x = larger(smaller(x, all(88.0f)), all(-104.0f));
  Vector n = nearest(mul(x, all(1.44269504f)));
  Vector r = fma(n, all(-0.693359375f), x);
  r = fma(n, all(2.12194440e-4f), r);
  Vector y = all(1.9875691500e-4f);
  y = fma(y, r, all(1.3981999507e-3f));
  y = fma(y, r, all(8.3334519073e-3f));
  y = fma(y, r, all(4.1665795894e-2f));
  y = fma(y, r, all(1.6666665459e-1f));
  y = fma(y, r, all(5.0000001201e-1f));
  y = add(fma(y, mul(r, r), r), all(1.0f));
  return times_power(y, n);
}
