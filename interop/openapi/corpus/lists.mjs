// Reads answers to tools/list as the TypeScript SDKs do, and compiles their schemas as a client's validator does.
//
//     node lists.mjs < FILES    one path a line; prints a line of JSON for each list that is refused
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const from = (directory) => createRequire(new URL(`../../${directory}/package.json`, import.meta.url));
const load = (directory, name) => import(pathToFileURL(from(directory).resolve(name)).href);
const { ListToolsResultSchema } = await load('typescript-v1', '@modelcontextprotocol/sdk/types.js');
const { AjvJsonSchemaValidator } = await load('typescript-v1', '@modelcontextprotocol/sdk/validation/ajv');
const { isSpecType } = await load('typescript', '@modelcontextprotocol/client');
const { default: Ajv2020 } = await load('typescript-v1', 'ajv/dist/2020.js');
const Ajv = Ajv2020.default ?? Ajv2020;

// Silences warnings about unknown formats.
console.warn = () => {};

for await (const file of createInterface({ input: process.stdin })) {
    const list = JSON.parse(readFileSync(file, 'utf8'));
    const refuse = (kind, tool, what) => console.log(JSON.stringify({ file, kind, tool, what: String(what).slice(0, 300) }));
    const parsed = ListToolsResultSchema.safeParse(list);
    if (!parsed.success) refuse('typescript-v1', null, JSON.stringify(parsed.error.issues.slice(0, 3)));
    if (!isSpecType.ListToolsResult(list)) refuse('typescript', null, 'the list is refused');
    // One for all schemas of a list, as in a client, because making one takes longer than a schema.
    const ajv = new Ajv({ strict: false, validateFormats: false, logger: false });
    const client = new AjvJsonSchemaValidator();
    for (const tool of list.tools) {
        for (const place of ['inputSchema', 'outputSchema']) {
            if (!tool[place]) continue;
            try {
                ajv.compile(tool[place]);
                ajv.removeSchema(tool[place]);
                // The client's own validator for output schemas, for each list.
                if (place === 'outputSchema') client.getValidator(tool[place]);
            } catch (error) {
                refuse('ajv', tool.name, `${place}: ${error.message}`);
            }
        }
    }
}
