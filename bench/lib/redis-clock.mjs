/** This process's time in ms since 1970, with fractions. */
export const now = () => performance.timeOrigin + performance.now();

/** How far this process's clock is ahead of Redis's, in ms, by the quickest of some round trips. */
export async function redisClockAhead(redis) {
  let best = { roundTrip: Infinity, ahead: 0 };
  for (let i = 0; i < 10; i += 1) {
    const sentAt = now();
    const [seconds, micros] = await redis.client.time();
    const receivedAt = now();
    const roundTrip = receivedAt - sentAt;
    if (roundTrip < best.roundTrip) {
      const redisMillis = Number(seconds) * 1000 + Number(micros) / 1000;
      best = { roundTrip, ahead: (sentAt + receivedAt) / 2 - redisMillis };
    }
  }
  return best.ahead;
}
