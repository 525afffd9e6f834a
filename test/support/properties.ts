// eslint-disable-next-line no-restricted-imports -- the one import
import fc from 'fast-check';

import { IS_FULL } from './extent.js';

// `npm test` draws the same inputs each time, so that it finds the same; `npm run test:long` draws new ones.
if (!IS_FULL) fc.configureGlobal({ seed: 1 });

export default fc;
