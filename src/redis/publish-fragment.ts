/** The Lua fragment of this name sends the wakes: `lua/lib/publish.lua`. */
export const PUBLISH_FRAGMENT = 'lib/publish';

/** Messages of which Redis: what they are sent with, and how their channels are told apart. */
export interface MessageRouting {
  /** In a cluster, messages stay on the shard of their channel. */
  readonly isCluster: boolean;
  /** Redis has channels for all of its databases together, so they carry the number of all but the first. */
  readonly database: number;
}

/** What a channel's name has after the name of the key's state. */
export function wakeSuffix({ database }: Pick<MessageRouting, 'database'>): string {
  return database === 0 ? ':wake' : `:wake:${database}`;
}

/** The fragment's text for this Redis. */
export function publishFragment({ isCluster, database }: MessageRouting): string {
  return `
local function publish(state_key, message)
  redis.call('${isCluster ? 'SPUBLISH' : 'PUBLISH'}', state_key .. '${wakeSuffix({ database })}', message)
end`;
}
