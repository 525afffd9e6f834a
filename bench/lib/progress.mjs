// One line on standard error with the current measurement.
let width = 0;

export function progress(text) {
  if (!process.stderr.isTTY) {
    process.stderr.write(`${text}\n`);
    return;
  }
  process.stderr.write(`\r${text.padEnd(width)}`);
  width = text.length;
}

export function progressEnds() {
  if (process.stderr.isTTY) process.stderr.write(`\r${' '.repeat(width)}\r`);
}
