"""The operations of the facade, by kind. Importing a module installs its functions, methods and operators."""
