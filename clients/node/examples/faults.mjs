import { SluiceClient, SluiceUnavailableError } from 'sluice-client';

// Nothing listens there.
const sluice = new SluiceClient('http://localhost:9');

try {
  await sluice.check('report');
} catch (error) {
  if (!(error instanceof SluiceUnavailableError)) throw error;
  console.log(`${error.message}; it may have counted: ${error.mayHaveCounted}`);
}
