/** An item of a list of RFC 9651: a text and its parameters, such as `"hour";r=12;t=60`. */
const ITEM =
  /"((?:[^"\\]|\\.)*)"((?:; *[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s",;]*))?)*)/g;
const PARAMETER = /; *([a-z*][a-z0-9_.*-]*)(?:=("(?:[^"\\]|\\.)*"|[^\s",;]*))?/g;

/** The parameters by their names. Each value is as the header has it: a text has quotation marks. */
export type Parameters = ReadonlyMap<string, string>;

/** Reads the texts in a list of RFC 9651, each with its parameters. Ignores all other items. */
export function structuredItems(header: string): (readonly [text: string, Parameters])[] {
  return [...header.matchAll(ITEM)].map(([, text = '', parameters = '']) => [
    text.replaceAll(/\\(.)/g, '$1'),
    new Map([...parameters.matchAll(PARAMETER)].map(([, name = '', value = '']) => [name, value])),
  ]);
}

/** Reads a whole number of 0 or more. */
export function wholeNumber(text: unknown): number | undefined {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
