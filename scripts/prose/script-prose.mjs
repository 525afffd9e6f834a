// Comments, texts and test titles of TypeScript and JavaScript, with TypeScript's scanner: to parse each file would take
// several times as long.
import ts from 'typescript';

const { SyntaxKind: Kind } = ts;
const COMMENTS = new Set([Kind.SingleLineCommentTrivia, Kind.MultiLineCommentTrivia]);
const TEXTS = new Set([
  ...[Kind.StringLiteral, Kind.NoSubstitutionTemplateLiteral],
  ...[Kind.TemplateHead, Kind.TemplateMiddle, Kind.TemplateTail],
]);
/** A slash after one of these is a division. After anything else it begins a regular expression. */
const OPERANDS = new Set([
  ...[Kind.Identifier, Kind.NumericLiteral, Kind.BigIntLiteral, Kind.ThisKeyword],
  ...[Kind.CloseParenToken, Kind.CloseBracketToken, Kind.CloseBraceToken, ...TEXTS],
]);

/** A title is the first argument of `describe`, `it`, `test` or a helper such as `testWithPython`, also after `.each(…)`. */
const BEFORE_TITLE = /(?<=(?:(?<![.\w])(?:describe|it|test)(?:[A-Z]\w*)?(?:\.\w+)*|[)`])\(\s*)/y;

/** Returns the comments and texts of a script, each with its range, and whether it is a text and also a test title. */
export function partsOf(source) {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, undefined, source);
  const parts = [];
  /** The enclosing templates, each with the number of open braces in its current expression. */
  const templates = [];
  let last;
  for (let kind = scanner.scan(); kind !== Kind.EndOfFileToken; kind = scanner.scan()) {
    const template = templates.at(-1);
    kind = rescan(scanner, kind, { last, templates });
    const range = [scanner.getTokenStart(), scanner.getTokenEnd()];
    const isRest = kind === Kind.TemplateMiddle || kind === Kind.TemplateTail;
    const isText = TEXTS.has(kind);
    const isTitle = isRest ? template.isTitle : isText && isTitleAt(source, range[0]);
    if (isText || COMMENTS.has(kind)) parts.push({ range, isText, isTitle });
    if (kind === Kind.TemplateHead) templates.push({ open: 0, isTitle });
    if (kind === Kind.TemplateTail) templates.pop();
    if (kind > Kind.LastTriviaToken) last = kind;
  }
  return parts;
}

/** The scanner alone can not tell a division from a regular expression, or a brace from the rest of a template. */
function rescan(scanner, kind, { last, templates }) {
  const isSlash = kind === Kind.SlashToken || kind === Kind.SlashEqualsToken;
  if (isSlash && !OPERANDS.has(last)) return scanner.reScanSlashToken();
  const template = templates.at(-1);
  if (template === undefined) return kind;
  if (kind === Kind.OpenBraceToken) template.open += 1;
  if (kind !== Kind.CloseBraceToken) return kind;
  if (template.open === 0) return scanner.reScanTemplateToken(false);
  template.open -= 1;
  return kind;
}

function isTitleAt(source, position) {
  BEFORE_TITLE.lastIndex = position;
  return BEFORE_TITLE.test(source);
}
