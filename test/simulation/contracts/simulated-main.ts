import { replaceModules } from "../module-replacement.ts";

replaceModules();
// Behind the replacement: it brings the services with it.
const { checkSimulated } = await import("./simulated-stages.ts");
console.log(JSON.stringify(await checkSimulated()));
process.exit();
