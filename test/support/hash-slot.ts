/**
 * The part of a name that decides its slot in Redis Cluster: the text between the first `{` and
 * the next `}`, or the whole name if that text is empty or missing.
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 */
export function hashedPart(name: string): string {
  const open = name.indexOf('{');
  const close = name.indexOf('}', open + 1);
  return open === -1 || close === -1 || close === open + 1 ? name : name.slice(open + 1, close);
}
