// One line on standard error that says what is being measured.
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
