type NotEmpty<Item> = readonly [Item, ...Item[]];

/**
 * Calls a script that may leave the last keys to the next call if the first ones take it long.
 * @param call replies for the first key at least
 */
export async function inSeveralCalls<Key, Reply>(
  keys: readonly Key[],
  call: (rest: NotEmpty<Key>) => Promise<readonly Reply[]>,
): Promise<Reply[]> {
  const replies: Reply[] = [];
  for (let rest = keys; isNotEmpty(rest); rest = keys.slice(replies.length)) {
    const more = await call(rest);
    if (more.length === 0) throw new Error('a script has left all keys unanswered');
    replies.push(...more);
  }
  return replies;
}

function isNotEmpty<Item>(items: readonly Item[]): items is NotEmpty<Item> {
  return items.length > 0;
}
