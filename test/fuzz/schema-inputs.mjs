// @ts-check
// What a fuzzer of schemas begins with: the schemas of the mutator, right, nearly right and wrong.
import { Random } from '../interop/random.mjs';
import { hostileSchema, jsonSchema, msgpackSchema } from '../mutate/schemas.mjs';

/** Small ones, the same every time. @returns {Buffer[]} */
export function hostileSchemas() {
  const random = new Random('fuzz', 'schema');
  const made = Array.from({ length: 200 }, (_, index) => {
    const isDense = index % 2 === 0;
    if (index % 4 < 2) return msgpackSchema(random, isDense);
    return index % 3 === 0 ? hostileSchema(random) : jsonSchema(random, isDense);
  });
  return made.filter((bytes) => bytes.length > 0 && bytes.length <= 300);
}
