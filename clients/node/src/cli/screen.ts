import { printable } from './printable.js';
import { sizeOf } from './terminal-size.js';

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_TO_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const CTRL_C = '\u0003';

/** The whole terminal, until `close`. */
export class Screen {
  /** @param onEnd is called when a person ends it, by q or Ctrl-C */
  constructor(private readonly onEnd: () => void) {
    process.stdout.write(ENTER);
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true);
    process.stdin.setEncoding('utf8').on('data', this.#read);
  }

  get rows(): number {
    return sizeOf(process.stdout).rows;
  }

  /** Replaces what is shown. Each line is cut at the right edge. */
  draw(lines: readonly string[]): void {
    const { columns, rows } = sizeOf(process.stdout);
    const shown = lines
      .slice(0, rows)
      .map((line) => printable(line).slice(0, columns) + CLEAR_TO_LINE_END);
    process.stdout.write(HOME + shown.join('\r\n') + CLEAR_BELOW);
  }

  /** Shows again what was there before. */
  close(): void {
    process.stdout.write(LEAVE);
    if (!process.stdin.isTTY) return;
    process.stdin.off('data', this.#read).pause().setRawMode(false);
  }

  readonly #read = (typed: string): void => {
    if (/q/i.test(typed) || typed.includes(CTRL_C)) this.onEnd();
  };
}
