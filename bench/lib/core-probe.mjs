// A process that says on request how fast the core is on which it runs: for arithmetic, and for reads from memory that
// no cache holds.
const ENTRIES = 1 << 24;
const READS = 300_000;
const STEPS = 3_000_000;

/** Each entry is the position of the next one, in one cycle through all of them (Sattolo's algorithm). */
function randomCycle(length) {
  const next = Int32Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i -= 1) {
    const other = Math.floor(Math.random() * i);
    [next[i], next[other]] = [next[other], next[i]];
  }
  return next;
}

const cycle = randomCycle(ENTRIES);
let position = 0;

function readNanos() {
  const began = process.hrtime.bigint();
  for (let i = 0; i < READS; i += 1) position = cycle[position];
  return Number(process.hrtime.bigint() - began) / READS;
}

function stepNanos() {
  let value = position;
  const began = process.hrtime.bigint();
  for (let i = 0; i < STEPS; i += 1) value = (Math.imul(value, 1664525) + 1013904223) | 0;
  const nanos = Number(process.hrtime.bigint() - began) / STEPS;
  // Without a use of the value, V8 may leave the loop out.
  position = (position + (value & 1)) % ENTRIES;
  return nanos;
}

stepNanos();
readNanos();
process.on('message', () => process.send({ stepNanos: stepNanos(), readNanos: readNanos() }));
process.send('ready');
