import express from 'express';
import { rateLimit, SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);
const app = express();

app.use(rateLimit(sluice, { keyOf: (request) => `visitor ${request.ip}` }));
app.get('/', (request, response) => response.send('welcome\n'));
app.listen(process.env.PORT);
