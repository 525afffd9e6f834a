// `npm run build`: compiles `src` to `dist`. `npm start` and `npm test` do so themselves.
import { build } from './lib/prepare.mjs';

build();
