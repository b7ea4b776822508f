// extension.js - starts `vwn lsp` for .vwn files, through vscode-languageclient, which `npm install` in this folder brings.
const vscode = require("vscode");

let client;

function activate() {
  let library;
  try {
    library = require("vscode-languageclient/node");
  } catch {
    vscode.window.showInformationMessage("vwn: colours only, until `npm install` is run in the extension's folder");
    return;
  }
  const command = vscode.workspace.getConfiguration("vwn").get("program");
  client = new library.LanguageClient("vwn", "vwn", { command, args: ["lsp"] }, { documentSelector: [{ language: "vwn" }] });
  return client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
