// The stock peer: a typical Express server, with rate-limiter-flexible on ioredis.
import { randomUUID } from 'node:crypto';

import express from 'express';
import { Redis } from 'ioredis';
import { RateLimiterRedis } from 'rate-limiter-flexible';

const limiter = new RateLimiterRedis({
  storeClient: new Redis(process.env.REDIS_URL),
  points: Number(process.env.MAX_REQUESTS),
  duration: 1,
});

const app = express();
app.post('/rate/:key', async (request, response) => {
  const { key } = request.params;
  try {
    await limiter.consume(key);
    response.json({ request_id: randomUUID() });
  } catch (refusal) {
    if (refusal instanceof Error) throw refusal;
    response.set('Retry-After', String(Math.max(1, Math.ceil(refusal.msBeforeNext / 1000))));
    response.status(429).json({ error: 'rate limit exceeded', key });
  }
});
app.listen(Number(process.env.PORT), '127.0.0.1');
