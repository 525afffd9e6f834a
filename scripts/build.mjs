// `npm run build`: compiles `src` to `dist`. `npm start` and `npm test` also compile it.
import { build } from './lib/prepare.mjs';

build();
