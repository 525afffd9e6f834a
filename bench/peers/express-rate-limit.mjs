// Express with express-rate-limit, on rate-limit-redis and ioredis.
import { randomUUID } from 'node:crypto';

import express from 'express';
import { rateLimit } from 'express-rate-limit';
import { Redis } from 'ioredis';
import { RedisStore } from 'rate-limit-redis';

const redis = new Redis(process.env.REDIS_URL);
const limiter = rateLimit({
  windowMs: 1000,
  limit: Number(process.env.MAX_REQUESTS),
  keyGenerator: (request) => request.params.key,
  handler: (request, response) => {
    response.status(429).json({ error: 'rate limit exceeded', key: request.params.key });
  },
  store: new RedisStore({ sendCommand: (command, ...args) => redis.call(command, ...args) }),
});

const app = express();
app.post('/rate/:key', limiter, (_request, response) => {
  response.json({ request_id: randomUUID() });
});
app.listen(Number(process.env.PORT), '127.0.0.1');
