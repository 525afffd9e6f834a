import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** An event in a run of the demo. */
export type DemoEvent = Readonly<Record<string, unknown>> & { readonly event: string };

const FOLDER = new URL('../../../scripts/demo/', import.meta.url);

/** The events of the run that docs/images/demo.svg shows. */
export const recording: readonly DemoEvent[] = readFileSync(
  new URL('recording.jsonl', FOLDER),
  'utf8',
)
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as DemoEvent);

// The scripts are plain JavaScript, so their types are declared here.
const { judge } = (await load('verdict.mjs')) as {
  readonly judge: (events: readonly DemoEvent[]) => { problems: string[]; summary: string };
};
const { screenLines } = (await load('screen-lines.mjs')) as {
  readonly screenLines: (events: readonly DemoEvent[], millis: number) => string[];
};
const { picture } = (await load('picture.mjs')) as {
  readonly picture: (events: readonly DemoEvent[]) => string;
};
const { linePrinter } = (await load('sentences.mjs')) as {
  readonly linePrinter: (print: (line: string) => void) => (event: DemoEvent) => void;
};
export { judge, linePrinter, picture, screenLines };

async function load(file: string): Promise<unknown> {
  return import(fileURLToPath(new URL(file, FOLDER)));
}
