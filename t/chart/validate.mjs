// Holds objects against the schemas of Kubernetes' API: validate.mjs DIRECTORY
// reads a list of [name, object] as JSON, and prints what is wrong, a line each.
//
// DIRECTORY has the packages of package.json: the API's schemas, and those of
// KEDA, the Prometheus operator, the Gateway API and cert-manager.  They come
// as validators, which know forms, enumerations and what is required, and as
// types.  Validators let an unknown field pass, which an API server refuses, so
// each object is also compiled as a literal of its type.

import fs from "node:fs";
import module from "node:module";
import path from "node:path";

const root = path.resolve(process.argv[2]);
const from = module.createRequire(path.join(root, "package.json"));
const ts = from("typescript");

const FOREIGN = {
    "cert-manager.io": "@kubernetes-models/cert-manager",
    "gateway.networking.k8s.io": "@kubernetes-models/gateway-api",
    "keda.sh": "@kubernetes-models/keda",
    "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
};

// Where the packages keep a kind: those of Kubernetes by its group alone.
function home(object) {
    const group = object.apiVersion.split("/")[0];
    return `${FOREIGN[group] || "kubernetes-models"}/${object.apiVersion}`
        + `/${object.kind}`;
}

async function judge(name, object) {
    const known = await import(
        path.join(root, "node_modules", `${home(object)}.js`));
    try {
        new known[object.kind](object).validate();
    } catch (e) {
        return [`${name}: ${e.message}`];
    }
    return [];
}

function compile(named) {
    const source = path.join(root, "objects.mts");
    const rows = [];
    named.forEach(([, object], i) => {
        rows.push(`import type { I${object.kind} as T${i} } from`
                  + ` "${home(object)}"; const o${i}: T${i} =`
                  + ` ${JSON.stringify(object)};`);
    });
    fs.writeFileSync(source, rows.join("\n"));
    const program = ts.createProgram([source], {
        noEmit: true, strict: true, skipLibCheck: true, types: [],
        module: ts.ModuleKind.NodeNext,
        moduleResolution: ts.ModuleResolutionKind.NodeNext,
    });
    return ts.getPreEmitDiagnostics(program).map((d) => {
        const line = d.file
            ? d.file.getLineAndCharacterOfPosition(d.start).line : 0;
        const text = ts.flattenDiagnosticMessageText(d.messageText, " ");
        return `${named[line]?.[0]}: ${text}`;
    });
}

const named = JSON.parse(fs.readFileSync(0, "utf8"));
const wrong = compile(named);
for (const [name, object] of named) {
    wrong.push(...await judge(name, object));
}
console.log(wrong.join("\n"));
