// Comments and texts of TypeScript and JavaScript, with TypeScript's scanner: to parse each file would take several
// times as long.
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

/** @returns the comments and texts of a script, each with its range and whether it is a text */
export function partsOf(source) {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, undefined, source);
  const parts = [];
  /** For each enclosing template: the number of open braces in its current expression. */
  const templates = [];
  let last;
  for (let kind = scanner.scan(); kind !== Kind.EndOfFileToken; kind = scanner.scan()) {
    kind = rescan(scanner, kind, { last, templates });
    const range = [scanner.getTokenStart(), scanner.getTokenEnd()];
    if (COMMENTS.has(kind) || TEXTS.has(kind)) parts.push({ range, isText: TEXTS.has(kind) });
    if (kind > Kind.LastTriviaToken) last = kind;
  }
  return parts;
}

/** The scanner alone can not tell a division from a regular expression, or a brace from the rest of a template. */
function rescan(scanner, kind, { last, templates }) {
  const isSlash = kind === Kind.SlashToken || kind === Kind.SlashEqualsToken;
  if (isSlash && !OPERANDS.has(last)) return scanner.reScanSlashToken();
  if (kind === Kind.TemplateHead) templates.push(0);
  if (templates.length === 0) return kind;
  if (kind === Kind.OpenBraceToken) templates.push(templates.pop() + 1);
  if (kind !== Kind.CloseBraceToken) return kind;
  const open = templates.pop();
  if (open > 0) {
    templates.push(open - 1);
    return kind;
  }
  const rest = scanner.reScanTemplateToken(false);
  if (rest === Kind.TemplateMiddle) templates.push(0);
  return rest;
}
