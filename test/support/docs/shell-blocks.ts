import { readPage } from './pages.js';

/** A command of a page, with its output on the page. */
export interface ShellBlock {
  /** The line of the page. */
  readonly line: number;
  readonly code: string;
  /** Undefined if the page does not show the output. */
  readonly prints: string | undefined;
  /** The port on which it serves, if it does not end by itself. */
  readonly servesOn: string | undefined;
  /** Why it is not run, if a comment above it says so. */
  readonly notRun: string | undefined;
  /** Of a page with several ways to the same result: the way that the command belongs to. All have the others. */
  readonly way: string | undefined;
}

/** Whether a command needs Docker, Helm or a cluster. test/deploy/commands.test.ts runs these, and the others run anywhere. */
export function isOfDeployment({ code }: ShellBlock): boolean {
  return /^(docker|helm|kubectl)\b/m.test(code);
}

/** The ports on which commands start programs: `PORT=8101`, `--port 6391`, and `for port in 8121 8122`. */
export function portsSetBy(blocks: readonly ShellBlock[]): string[] {
  return blocks
    .filter(({ notRun }) => notRun === undefined)
    .flatMap(({ code }) => [
      ...code.matchAll(
        /\b(?:PORT=|--port |for port in |listen-address=localhost:)(\d{4}(?: \d{4})*)/g,
      ),
    ])
    .flatMap(([, ports]) => ports!.split(' '));
}

interface Fence {
  readonly line: number;
  readonly language: string;
  readonly text: string;
  /** The comment above it. */
  readonly comment: string;
  readonly heading: number;
}

/**
 * The commands of a page, in their order: each fence of `sh`, with its output in a following fence of `text`, and each
 * `$ ` in a fence of `console`. A comment above a fence may say `serves on PORT`, `way: NAME` or `not run: REASON`.
 */
export function shellBlocks(page: string): ShellBlock[] {
  const fences = fencesOf(readPage(page));
  return fences.flatMap((fence, i) => {
    const notRun = /not run: (.*?) -->/.exec(fence.comment)?.[1];
    if (fence.language === 'console') return consoleCommands(fence, notRun);
    if (fence.language !== 'sh') return [];
    const next = fences[i + 1];
    const hasOutput = next?.language === 'text' && next.heading === fence.heading;
    const way = /way: (\w+)/.exec(fence.comment)?.[1];
    const servesOn = /serves on (\d+)/.exec(fence.comment)?.[1];
    const prints = hasOutput ? next.text : undefined;
    return [{ line: fence.line, code: fence.text, prints, servesOn, notRun, way }];
  });
}

function fencesOf(text: string): Fence[] {
  const fences: Fence[] = [];
  const lines = text.split('\n');
  let heading = 0;
  for (let i = 0; i < lines.length; i += 1) {
    if (lines[i]!.startsWith('#')) heading = i;
    const language = /^```(\w+)$/.exec(lines[i]!)?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf('```', i);
    const above = lines.slice(Math.max(0, i - 2), i).join('');
    const comment = above.startsWith('<!--') ? above : '';
    fences.push({
      line: i + 1,
      language,
      text: lines.slice(i + 1, end).join('\n'),
      comment,
      heading,
    });
    i = end;
  }
  return fences;
}

function consoleCommands({ line, text }: Fence, notRun: string | undefined): ShellBlock[] {
  const lines = text.split('\n');
  const starts = lines.flatMap((each, i) => (each.startsWith('$ ') ? [i] : []));
  return starts.map((start, n) => ({
    line: line + 1 + start,
    code: lines[start]!.slice(2),
    prints: lines.slice(start + 1, starts[n + 1]).join('\n'),
    servesOn: undefined,
    notRun,
    way: undefined,
  }));
}
