const ATTRIBUTES = String.raw`(?:\s+[\w:-]+="(?:[^"<&]|&\w+;)*")*`;
const TOKEN = new RegExp(
  String.raw`<(?<end>/)?(?<name>[A-Za-z][\w:-]*)${ATTRIBUTES}\s*(?<empty>/)?>|(?<text>(?:[^<&]|&\w+;)+)`,
  'y',
);

/**
 * The first error in a text as XML without comments and declarations, or undefined: each tag needs its end, each
 * attribute its quotes, and one element must contain all others.
 */
export function xmlProblem(xml: string): string | undefined {
  const open: string[] = [];
  let roots = 0;
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < xml.length) {
    const at = TOKEN.lastIndex;
    const groups = TOKEN.exec(xml)?.groups;
    if (groups === undefined) return `at ${at}: ${xml.slice(at, at + 60)}`;
    const { end, name, empty, text } = groups;
    if (text !== undefined) {
      if (open.length === 0 && text.trim() !== '') return `text outside: ${text}`;
    } else if (end !== undefined) {
      const opened = open.pop();
      if (opened !== name) return `</${String(name)}> ends <${String(opened)}>`;
    } else {
      if (open.length === 0) roots += 1;
      if (empty === undefined) open.push(name!);
    }
  }
  if (open.length > 0) return `<${open.join('> <')}> without an end`;
  return roots === 1 ? undefined : `${roots} outermost elements`;
}
