// node debug-reader.mjs <url> <keys> <least number of listings> <least seconds>
// Reads `GET /debug` again and again. Ends with code 1 if a listing lacks keys.
const [url, keys, atLeast, seconds] = process.argv.slice(2);

const began = performance.now();
const elapsed = () => (performance.now() - began) / 1000;
let count = 0;
let bytes = 0;
while (count < Number(atLeast) || elapsed() < Number(seconds)) {
  const response = await fetch(`${url}/debug`);
  const body = await response.text();
  bytes = body.length;
  const found = Object.keys(JSON.parse(body).Instances).filter((key) => key.startsWith('listed-'));
  if (response.status !== 200 || found.length !== Number(keys)) {
    console.error(`a listing has status ${response.status} and ${found.length} keys`);
    process.exit(1);
  }
  count += 1;
}
console.log(JSON.stringify({ count, bytes, seconds: elapsed() / count }));
