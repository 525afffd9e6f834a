import type { QueueList, QueueListState } from '../../limiter/queue-order.js';

/** What `lists.parse` in `lua/queue/lists.lua` reads: the list of a check; '' if its key has one list. */
export function encodeList(list: QueueList | undefined): string {
  if (!list) return '';
  const id = `${list.kind}:${encodeURIComponent(list.name)}`;
  if (list.kind === 'lane') return `${id}:${list.headStartMillis}`;
  const most = list.maxRequests === undefined ? '' : `:${list.maxRequests}`;
  return `${id}:${list.weight}${most}`;
}

/** What `lists.describe_place` in `lua/queue/lists.lua` says of a place; undefined if its key has one list. */
export function decodeListOfPlace(text: string): QueueList | undefined {
  if (text === '') return undefined;
  const { kind, name } = decodeListId(text);
  const parameter = Number(text.split(':')[2]);
  return kind === 'lane'
    ? { kind, name, headStartMillis: parameter }
    : { kind: 'group', name, weight: parameter, maxRequests: undefined };
}

/** The list with an id of `lua/queue/lists.lua`. */
export function decodeListId(id: string): Pick<QueueListState, 'kind' | 'name'> {
  const [kind = '', name = ''] = id.split(':');
  return { kind: kind as QueueListState['kind'], name: decodeURIComponent(name) };
}
