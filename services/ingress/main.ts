import process from "node:process";
import { runMain } from "../common/lifecycle/main.ts";
import { parse } from "./config.ts";
import { run } from "./run.ts";

await runMain(process, { name: "ingress", parse, run });
