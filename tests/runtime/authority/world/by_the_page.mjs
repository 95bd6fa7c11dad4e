// The digest of a JSON value, written again from docs/design/world.md: a document a line in, its digest in hex out.
// RFC 8785 is what JSON.stringify writes, with keys sorted by UTF-16 units, as JavaScript sorts.
import { createInterface } from "node:readline";

const LEAF = 1024;
const utf8 = new TextEncoder();

// -- BLAKE3, of up to 2^32 bytes

const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const MIXES = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];
const [CHUNK_START, CHUNK_END, PARENT, ROOT] = [1, 2, 4, 8];

const rotated = (word, by) => ((word >>> by) | (word << (32 - by))) >>> 0;

function compressed(chaining, block, counter, length, flags) {
  const v = [...chaining, ...IV.slice(0, 4), counter, 0, length, flags];
  let words = block;
  for (let round = 0; round < 7; round++) {
    MIXES.forEach(([a, b, c, d], place) => {
      for (const [word, first, second] of [[words[2 * place], 16, 12], [words[2 * place + 1], 8, 7]]) {
        v[a] = (v[a] + v[b] + word) >>> 0;
        v[d] = rotated(v[d] ^ v[a], first);
        v[c] = (v[c] + v[d]) >>> 0;
        v[b] = rotated(v[b] ^ v[c], second);
      }
    });
    words = PERMUTATION.map((from) => words[from]);
  }
  return v.slice(0, 8).map((word, place) => (word ^ v[place + 8]) >>> 0);
}

function wordsOf(bytes) {
  const padded = new Uint8Array(64);
  padded.set(bytes);
  const view = new DataView(padded.buffer);
  return Array.from({ length: 16 }, (_, place) => view.getUint32(4 * place, true));
}

function chunk(bytes, counter, flags) {
  let chaining = IV;
  const blocks = Math.max(1, Math.ceil(bytes.length / 64));
  for (let each = 0; each < blocks; each++) {
    const block = bytes.subarray(64 * each, 64 * each + 64);
    const last = each === blocks - 1;
    const kind = (each ? 0 : CHUNK_START) | (last ? CHUNK_END | flags : 0);
    chaining = compressed(chaining, wordsOf(block), counter, block.length, kind);
  }
  return chaining;
}

function subtree(bytes, first, flags) {
  if (bytes.length <= 1024) return chunk(bytes, first, flags);
  const chunks = Math.ceil(bytes.length / 1024);
  const left = 2 ** Math.floor(Math.log2(chunks - 1));
  const halves = [subtree(bytes.subarray(0, 1024 * left), first, 0), subtree(bytes.subarray(1024 * left), first + left, 0)];
  return compressed(IV, halves.flat(), 0, 64, PARENT | flags);
}

function H(bytes) {
  const digest = new Uint8Array(32);
  subtree(bytes, 0, ROOT).forEach((word, place) => new DataView(digest.buffer).setUint32(4 * place, word, true));
  return digest;
}

// -- the page

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join()}}`;
}

const C = (value) => utf8.encode(canonical(value));
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const joined = (...parts) => new Uint8Array(Buffer.concat(parts.map((part) => (typeof part === "string" ? utf8.encode(part) : part))));
const isLarge = (value) => C(value).length > LEAF;

function eightBytes(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
  return bytes;
}

function utf16(key) {
  return Array.from({ length: key.length }, (_, place) => key.charCodeAt(place).toString(16).padStart(4, "0")).join("");
}

function D(value) {
  if (!isLarge(value) || typeof value === "string") return H(C(value));
  const isArray = Array.isArray(value);
  const entries = isArray
    ? value.map((item, index) => ({ digits: index.toString(16).padStart(8, "0"), value: item }))
    : Object.keys(value).sort().map((key) => ({ digits: utf16(key), key, value: value[key] }));
  return P(entries, 0, isArray);
}

function whole(entries, isArray) {
  if (isArray) return entries.map((entry) => entry.value);
  const object = Object.create(null);
  for (const { key, value } of entries) object[key] = value;
  return object;
}

function weight({ key, value }, isArray) {
  return (isArray ? 1 : C(key).length + 2) + (isLarge(value) ? 66 : C(value).length);
}

function height(value) {
  if (value === null || typeof value !== "object") return 0;
  return 1 + Math.max(0, ...Object.values(value).map(height));
}

function P(entries, pos, isArray) {
  const weights = entries.reduce((sum, entry) => sum + weight(entry, isArray), 1);
  if (entries.length === 1 || weights <= LEAF) return leaf(entries, isArray);
  const digit = (entry, at) => entry.digits[at] ?? ".";
  let at = pos;
  while (entries.every((entry) => digit(entry, at) === digit(entries[0], at))) at++;
  const slots = new Map();
  for (const entry of entries) slots.set(digit(entry, at), [...(slots.get(digit(entry, at)) ?? []), entry]);
  const names = [...slots.keys()].join("");
  const skip = entries[0].digits.slice(pos, at);
  return H(
    joined(
      Uint8Array.of(isArray ? 4 : 2),
      eightBytes(C(whole(entries, isArray)).length),
      eightBytes(entries.length),
      `${skip.length}:${skip},${names.length}:${names},`,
      Uint8Array.from([...slots.values()].map((group) => height(whole(group, isArray)))),
      ...[...slots.values()].map((group) => P(group, at + 1, isArray)),
    ),
  );
}

function leaf(entries, isArray) {
  if (!entries.some((entry) => isLarge(entry.value))) return H(C(whole(entries, isArray)));
  const refs = Object.create(null);
  entries.forEach(({ key, value }, offset) => {
    if (isLarge(value)) refs[isArray ? offset : key] = hex(D(value));
  });
  const inline = isArray
    ? entries.map(({ value }) => (isLarge(value) ? null : value))
    : whole(entries.filter(({ value }) => !isLarge(value)), false);
  return H(joined(Uint8Array.of(isArray ? 3 : 1), C([inline, refs])));
}

for await (const line of createInterface({ input: process.stdin })) console.log(hex(D(JSON.parse(line))));
